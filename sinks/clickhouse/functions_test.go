package clickhouse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tidemark/sinks"
	"tidemark/sketches"
	"tidemark/windows"
)

// CH5: the SQL functions say of any sketch what package sketches says, in whatever
// pieces it came.
func TestFunctionsEqualSketches(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	r := rand.New(rand.NewPCG(4, 4))
	view := windows.Series{Type: "view"}
	base := minuteAt(2026, 3, 1, 0, 0)
	const sketchesInAll, pieces = 200, 4
	whole := make([]*sketches.Viewers, sketchesInAll)
	seal := &sinks.Seal{Identity: windows.Identity{E: 1, To: windows.Pair{F: base + pieces, S: 1}}}
	parts := make([]*partial, pieces)
	for i := range parts {
		parts[i] = &partial{minute: base + windows.Minute(i)}
		seal.Partials = append(seal.Partials, parts[i])
	}
	for i := range whole {
		whole[i] = sketches.NewViewers(0)
		users := make([]uint64, int(math.Exp(r.Float64()*math.Log(200_000)))-1)
		switch i { // around the borders between the forms
		case 0, 1, 2, 3, 4, 5:
			users = make([]uint64, []int{0, 12, 13, 1024, 1025, 1026}[i])
		}
		for j := range users {
			users[j] = r.Uint64()
			if r.IntN(50) == 0 {
				users[j] &^= (1<<20 - 1) << 30 // many zeros behind the register's number: a high rank
			}
			whole[i].AddHash(users[j])
		}
		for j, p := range parts {
			// In pieces that overlap, of very different sizes.
			from, to := len(users)*j*j/pieces/pieces, len(users)*(j+1)*(j+1)/pieces/pieces
			row := windows.Row{Item: fmt.Appendf(nil, "%03d", i), Events: 1 << 40, Reached: 1 << 40}
			viewersOf(&row, users[max(0, from-5):to])
			p.add(view, row)
		}
	}
	if err := s.Deliver(t.Context(), []*sinks.Seal{seal}); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Item string `ch:"item"`
		sqlNumber
	}
	for _, level := range []string{"minute", "hour", "day"} {
		for range 2 {
			got := make(map[string]sqlNumber)
			for _, a := range query[answer](t, w, `
				SELECT item, tidemark_viewers(seen, reached) AS viewers, tidemark_viewers_low(seen, reached) AS low, tidemark_viewers_high(seen, reached) AS high
				FROM (SELECT item, tidemark_union(viewers) AS seen, toUInt64(1000000000) AS reached
				      FROM {{.}}.item_viewers WHERE level = '`+level+`' GROUP BY item)`) {
				got[a.Item] = a.sqlNumber
			}
			for i, v := range whole {
				n := clamp(v, 1_000_000_000)
				if want, got := (sqlNumber{n.Value, n.Low, n.High}), got[fmt.Sprintf("%03d", i)]; got != want {
					t.Errorf("%s: sketch %d (dense: %v): %+v, want %+v", level, i, v.Dense(), got, want)
				}
			}
			w.exec(t, "OPTIMIZE TABLE {{.}}.item_viewers FINAL")
		}
	}
}

// A range is covered once, by whole days and hours where they fit.
func TestCovers(t *testing.T) {
	w := newWorld(t)
	w.sink(t)
	for _, c := range []struct{ since, until, want string }{
		{"2026-03-01 00:00:00", "2026-03-03 00:00:00", "day 03-01 00:00, day 03-02 00:00"},
		{"2026-02-28 23:58:00", "2026-03-01 01:01:00", "minute 02-28 23:58, minute 02-28 23:59, hour 03-01 00:00, minute 03-01 01:00"},
		{"2026-02-28 22:00:00", "2026-03-02 01:00:00", "hour 02-28 22:00, hour 02-28 23:00, day 03-01 00:00, hour 03-02 00:00"},
		{"2026-03-01 10:10:30", "2026-03-01 10:11:01", "minute 03-01 10:10, minute 03-01 10:11"},
		{"2026-03-01 10:10:00", "2026-03-01 10:10:00", ""},
		{"2026-03-01 10:59:00", "2026-03-01 12:00:00", "minute 03-01 10:59, hour 03-01 11:00"},
	} {
		got := one[string](t, w, `
			SELECT arrayStringConcat(groupArray(concat(level, ' ', formatDateTime(start, '%m-%d %H:%i'))), ', ')
			FROM (SELECT level, start FROM (
				SELECT 'minute' AS level, toDateTime('2026-02-27 00:00:00', 'UTC') + 60 * number AS start FROM numbers(1440 * 7)
				UNION ALL SELECT 'hour', toDateTime('2026-02-27 00:00:00', 'UTC') + 3600 * number FROM numbers(24 * 7)
				UNION ALL SELECT 'day', toDateTime('2026-02-27 00:00:00', 'UTC') + 86400 * number FROM numbers(7))
			WHERE tidemark_covers(level, start, '`+c.since+`', '`+c.until+`') ORDER BY start, level)`)
		if got != c.want {
			t.Errorf("[%s, %s): %s, want %s", c.since, c.until, got, c.want)
		}
	}
}

// The columns' form of every token gives the token's register, and back.
func TestTokenNumber(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		hash := r.Uint64()
		if r.IntN(2) == 0 {
			hash &^= (1<<11 - 1) << 39 // the suffix is zero
			hash >>= r.IntN(40)
			hash = hash&(1<<39-1) | r.Uint64()&^(1<<50-1)
		}
		token := sketches.Token(hash)
		got, err := tokenNumber(token)
		if err != nil {
			t.Fatalf("token %#x of %#x: %v", token, hash, err)
		}
		if got >= 1<<26 {
			t.Fatalf("token %#x is %#x, which has more than 26 bits", token, got)
		}
	}
	for _, none := range []uint32{0, 1, 1 << 31, 1<<26 + 2, 3 | 1<<7, 41<<1 | 1, 63<<1 | 1} {
		if got, err := tokenNumber(none); err == nil {
			t.Errorf("%#x is taken for a token: %#x", none, got)
		}
	}
}
