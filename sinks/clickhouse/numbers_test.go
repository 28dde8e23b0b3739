package clickhouse

import (
	"os"
	"strconv"
	"testing"
	"time"

	"tidemark/sinks"
	"tidemark/windows"
)

// seeds are those that tests of random seals run on: more of them in `make soak`.
func seeds(few int) (all []uint64) {
	if n, err := strconv.Atoi(os.Getenv("RAPID_CHECKS")); err == nil {
		few = max(few, n/100)
	}
	for i := range few {
		all = append(all, uint64(i))
	}
	return all
}

func minuteAt(year, month, day, hour, minute int) windows.Minute {
	return windows.MinuteOf(time.Date(year, time.Month(month), day, hour, minute, 0, 0, time.UTC).UnixMilli())
}

// CH1, CH5: whatever seals, in whatever groups, however often, and merged or not.
func TestNumbersComeOutAsTheyWentIn(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	for _, seed := range seeds(8) {
		r, o := newRandom(seed), newOracle()
		for _, table := range tables[:len(tables)-1] {
			w.exec(t, "TRUNCATE TABLE {{.}}."+table.name)
		}
		base := minuteAt(2026, 2, 27, 21, 17)
		reach := []int{40, 400, 4000}[r.IntN(3)]
		var seals []*sinks.Seal
		for range 1 + r.IntN(12) {
			seals = append(seals, r.seal(base, 1+r.IntN(12), reach))
		}
		for len(seals) > 0 {
			n := 1 + r.IntN(len(seals))
			group := seals[:n]
			for range 1 + r.IntN(2) {
				if err := s.Deliver(t.Context(), group); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range group {
				o.add(s)
			}
			seals = seals[n-min(r.IntN(3), n-1):] // some of them again
			if r.IntN(3) == 0 {
				for _, table := range tables {
					w.exec(t, "OPTIMIZE TABLE {{.}}."+table.name+" FINAL")
				}
			}
			if len(seals) <= 2 {
				break
			}
		}
		o.check(t, w)
		asked := 0
		for k := range o.viewers {
			if k.kind == windows.Overflow || asked == 12 {
				continue
			}
			asked++
			from := base + windows.Minute(r.IntN(reach))
			to := from + 1 + windows.Minute(r.IntN(reach))
			if r.IntN(3) == 0 {
				from, to = base-1, base+windows.Minute(reach)
			}
			n := o.number(k, from, to)
			if want, got := (sqlNumber{n.Value, n.Low, n.High}), w.viewers(t, k, from, to); got != want {
				t.Errorf("seed %d: viewers of %+v in [%s, %s): %+v, want %+v", seed, k, stamp(from), stamp(to), got, want)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
