package traffic_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"tidemark/cmd/traffic"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func config() traffic.Config {
	return traffic.Config{Seed: 7, Start: start, Run: "run", Rate: 500, Duration: 2 * time.Minute, Items: 2000, Viral: 15 * time.Second}
}

// line is an event of a stream.
type line struct {
	ID, Item, Type, User, Title, URL, Image, Country, Device, Source, Channel string
	Time                                                                      int64
	Bot                                                                       bool

	due time.Duration
}

func events(t *testing.T, c traffic.Config) (all []line, text []byte) {
	t.Helper()
	s, err := traffic.NewStream(c)
	if err != nil {
		t.Fatal(err)
	}
	for {
		from := len(text)
		var due time.Time
		var ok bool
		if text, due, ok, err = s.Next(text); err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all, text
		}
		e := line{due: due.Sub(c.Start)}
		if err := json.Unmarshal(text[from:], &e); err != nil {
			t.Fatalf("%v: %s", err, text[from:])
		}
		all = append(all, e)
	}
}

func TestTheSameSeedIsTheSameStream(t *testing.T) {
	config := func() traffic.Config {
		c := config()
		c.Duration = 20 * time.Second
		return c
	}
	_, one := events(t, config())
	if _, again := events(t, config()); !bytes.Equal(one, again) {
		t.Error("the same configuration makes other events")
	}
	other := config()
	other.Seed++
	if _, two := events(t, other); bytes.Equal(one, two) {
		t.Error("another seed makes the same events")
	}
	later := config()
	later.Start, later.Run = start.Add(time.Hour), "other"
	moved, _ := events(t, later)
	first, _ := events(t, config())
	for i, e := range first {
		e.ID = "other" + e.ID[len("run"):]
		e.Time += time.Hour.Milliseconds()
		if e != moved[i] {
			t.Fatalf("event %d of a stream an hour later is\n%+v, it must be\n%+v", i, moved[i], e)
		}
	}
}

// What a stream promises is in it.
func TestWhatIsInAStream(t *testing.T) {
	all, _ := events(t, config())
	// The rhythm of a day makes some more in its first minutes.
	if n := len(all); n < 60_000 || n > 60_600 {
		t.Errorf("%d events at 500 a second in two minutes", n)
	}
	var late, repeats, bots, back, infos int
	seen, people := make(map[string]line), make(map[string]bool)
	values := make(map[string]map[string]int)
	first, last := make(map[string]int), make(map[string]int) // views of the first and the second minute
	for i, e := range all {
		if i > 0 && e.due < all[i-1].due {
			t.Fatalf("event %d is due before the one before it", i)
		}
		if before, again := seen[e.ID]; again {
			repeats++
			before.due = e.due
			if before != e {
				t.Fatalf("a repeat differs: %+v, %+v", before, e)
			}
			continue
		}
		seen[e.ID] = e
		happened := time.UnixMilli(e.Time).Sub(start)
		switch behind := e.due - happened; {
		case behind < 0 || behind > 11*time.Minute:
			t.Fatalf("an event of %v is sent at %v", happened, e.due)
		case behind >= time.Millisecond:
			late++
		}
		if e.Bot {
			bots++
		} else if e.User != "" {
			if people[e.User] {
				back++
			}
			people[e.User] = true
		}
		if e.Title != "" && e.URL != "" && e.Image != "" {
			infos++
		}
		for name, v := range map[string]string{"type": e.Type, "country": e.Country, "device": e.Device, "source": e.Source, "channel": e.Channel} {
			if values[name] == nil {
				values[name] = make(map[string]int)
			}
			values[name][v]++
		}
		if e.due < 15*time.Second {
			first[e.Item]++
		} else if e.due > time.Minute {
			last[e.Item]++
		}
	}
	n := len(all)
	for what, share := range map[string][3]float64{
		"late": {float64(late), 0.005, 0.02}, "repeated": {float64(repeats), 0.005, 0.02}, "bots": {float64(bots), 0.01, 0.04},
		"of people who come back": {float64(back), 0.5, 0.8}, "with a title": {float64(infos), 0.85, 0.95},
	} {
		if got := share[0] / float64(n); got < share[1] || got > share[2] {
			t.Errorf("a share of %.3f is %s, it must be %v to %v", got, what, share[1], share[2])
		}
	}
	for name, least := range map[string]int{"type": 3, "country": 8, "device": 4, "source": 4, "channel": 10} {
		if len(values[name]) < least || name != "type" && values[name][""] > 0 {
			t.Errorf("%s has the values %v", name, values[name])
		}
	}
	if values["type"]["like"] == 0 || values["type"]["click"] == 0 {
		t.Errorf("types %v", values["type"])
	}
	top := func(of map[string]int) (item string) {
		for i, n := range of {
			if n > of[item] {
				item = i
			}
		}
		return item
	}
	viral := top(last)
	if first[viral] > 5 || top(first) != "video-0" {
		t.Errorf("%s has gone viral; it had %d views before, and first was %s", viral, first[viral], top(first))
	}
}

func TestAWrongConfigurationIsRefused(t *testing.T) {
	c := traffic.Config{Items: 1, Duration: -1}
	_, err := traffic.NewStream(c)
	for _, name := range []string{"rate", "items", "duration"} {
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(name+": ")) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	c := config()
	c.Duration = 1 << 62
	s, err := traffic.NewStream(c)
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	n := 0
	for b.Loop() {
		text, _, _, _ = s.Next(text[:0])
		n += len(text)
	}
	b.ReportMetric(float64(n)/float64(b.N), "B/event")
}
