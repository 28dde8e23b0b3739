package queries

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidemark/windows"
)

var parseNow = time.Date(2026, 1, 1, 0, 5, 12, 345_678_900, time.UTC)

func minuteAt(t *testing.T, s string) windows.Minute {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return windows.MinuteOf(at.UnixMilli())
}

func TestRangesAreMovedOutward(t *testing.T) {
	kept := windows.Range{From: minuteAt(t, "2020-01-01T00:00:00Z"), To: minuteAt(t, "2026-01-01T00:05:00Z")}
	for _, c := range []struct{ query, from, to string }{
		{"", "2020-01-01T00:00:00Z", "2026-01-01T00:05:00Z"},
		{"last=all", "2020-01-01T00:00:00Z", "2026-01-01T00:05:00Z"},
		{"last=5m", "2026-01-01T00:00:00Z", "2026-01-01T00:05:12.345Z"},
		{"last=1h", "2025-12-31T23:05:00Z", "2026-01-01T00:05:12.345Z"},
		{"last=2w", "2025-12-18T00:05:00Z", "2026-01-01T00:05:12.345Z"},
		{"last=5m&at=2025-06-01T12:00:00Z", "2025-06-01T11:55:00Z", "2025-06-01T12:00:00Z"},
		{"last=5m&at=2025-06-01T12:00:01Z", "2025-06-01T11:55:00Z", "2025-06-01T12:01:00Z"},
		{"last=1d&at=2025-06-01&tz=Asia/Kolkata", "2025-05-31T00:00:00+05:30", "2025-06-01T00:00:00+05:30"},
		{"from=2025-06-01T12:00:01.5Z&to=2025-06-01T12:00:01.6Z", "2025-06-01T12:00:00Z", "2025-06-01T12:01:00Z"},
		{"from=2025-06-01T12:00:00%2B05:30&to=1748780000000", "2025-06-01T06:30:00Z", "2025-06-01T12:14:00Z"},
		{"from=2025-06-01T12:00:00+05:30&to=1748780000000", "2025-06-01T06:30:00Z", "2025-06-01T12:14:00Z"}, // a plus not escaped
		{"from=2025-06-01", "2025-06-01T00:00:00Z", "2026-01-01T00:05:00Z"},
		{"to=2025-06-01", "2020-01-01T00:00:00Z", "2025-06-01T00:00:00Z"},
		{"from=2030-06-01", "2030-06-01T00:00:00Z", "2030-06-01T00:00:00Z"},
		{"to=2010-06-01", "2010-06-01T00:00:00Z", "2010-06-01T00:00:00Z"},
		{"from=2025-06-01&to=2025-06-02&tz=America/New_York", "2025-06-01T00:00:00-04:00", "2025-06-02T00:00:00-04:00"},
		{"from=2025-06-01T12:34:56Z&to=2025-06-01T14:34:56Z&step=hour", "2025-06-01T12:00:00Z", "2025-06-01T15:00:00Z"},
		{"from=2025-06-01T12:34:56Z&to=2025-06-01T14:34:56Z&step=hour&tz=Asia/Kolkata", "2025-06-01T18:00:00+05:30", "2025-06-01T21:00:00+05:30"},
		{"from=2025-06-04&to=2025-06-05&step=week", "2025-06-02T00:00:00Z", "2025-06-09T00:00:00Z"},
		{"from=2025-06-04&to=2025-06-05&step=month", "2025-06-01T00:00:00Z", "2025-07-01T00:00:00Z"},
		{"last=2d&step=day", "2025-12-30T00:00:00Z", "2026-01-01T00:05:12.345Z"},
		{"from=0&to=60000", "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z"},
	} {
		values, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		p := &parameters{values: values, now: parseNow}
		q, err := p.question()
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		s, err := q.When.resolve(q.Step, q.Zone, kept)
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		if from, to := s.from().Format(time.RFC3339Nano), s.to.Format(time.RFC3339Nano); from != c.from || to != c.to {
			t.Errorf("%s: %s to %s, want %s to %s", c.query, from, to, c.from, c.to)
		}
	}
}

// TestFaultsNameTheirParameter asks that every refusal says which parameter is
// wrong and what is allowed.
func TestFaultsNameTheirParameter(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, c := range []struct{ path, query, parameter, says string }{
		{"viewers", "itm=x", "itm", "did you mean item?"},
		{"viewers", "zzzzzz=x", "zzzzzz", "Known here: item, together"},
		{"viewers", "limit=3", "limit", "unknown parameter"},
		{"viewers", "item=", "item", "1 to 1024 bytes"},
		{"viewers", "item=" + long, "item", "1 to 1024 bytes"},
		{"viewers", "item=%ff", "item", "UTF-8"},
		{"viewers", strings.Repeat("item=x&", 101), "item", "at most 100"},
		{"viewers", "type=", "type", "1 to 64 bytes"},
		{"viewers", "last=5", "last", "such as 5m"},
		{"viewers", "last=m", "last", "such as 5m"},
		{"viewers", "last=0m", "last", "such as 5m"},
		{"viewers", "last=-5m", "last", "such as 5m"},
		{"viewers", "last=99999999d", "last", "such as 5m"},
		{"viewers", "last=5m&last=6m", "last", "once"},
		{"viewers", "last=5m&from=2026-01-01", "last", "beside from"},
		{"viewers", "last=", "last", "empty"},
		{"viewers", "at=2026-01-01", "at", "give last"},
		{"viewers", "from=yesterday", "from", "RFC 3339"},
		{"viewers", "from=2026-01-01T00:00:00", "from", "with its zone"},
		{"viewers", "from=9999-01-01", "from", "between 1970 and 2106"},
		{"viewers", "from=-1", "from", "between 1970 and 2106"},
		{"viewers", "from=99999999999999999999", "from", "RFC 3339"},
		{"viewers", "from=2026-01-02&to=2026-01-01", "to", "after from"},
		{"viewers", "from=2026-01-02&to=2026-01-02", "to", "after from"},
		{"viewers", "step=year", "step", "minute, hour, day, week, month"},
		{"viewers", "tz=Mars/Olympus", "tz", "IANA"},
		{"viewers", "tz=Local", "tz", "IANA"},
		{"viewers", "tz=../../etc/passwd", "tz", "IANA"},
		{"viewers", "together=yes", "together", "true, false"},
		{"viewers", "value=DE", "value", "give dimension"},
		{"viewers", "dimension=country", "dimension", "no dimension is declared"},
		{"top", "by=likes", "by", "views, viewers"},
		{"top", "limit=0", "limit", "from 1 to 1000"},
		{"top", "limit=1001", "limit", "from 1 to 1000"},
		{"top", "item=x", "item", "unknown parameter"},
		{"top", "by=viewers&viewers=false", "viewers", "has to be true"},
	} {
		values, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(Config{ViewTypes: []string{"view"}}).Ask(t.Context(), c.path, values, parseNow)
		fault, ok := errors.AsType[*Fault](err)
		if !ok {
			t.Errorf("%s?%.60s: %v, want a fault", c.path, c.query, err)
			continue
		}
		if fault.Parameter != c.parameter || !strings.Contains(fault.Detail, c.says) || fault.Refused {
			t.Errorf("%s?%.60s: %+v, want one about %s that says %q", c.path, c.query, fault, c.parameter, c.says)
		}
	}
}

func TestTooManySteps(t *testing.T) {
	w := When{From: time.UnixMilli(0), To: time.UnixMilli(windows.MaxTime)}
	for _, step := range Steps {
		s, err := w.resolve(step, time.UTC, windows.Range{})
		switch fault, refused := errors.AsType[*Fault](err); {
		case step == StepWeek || step == StepMonth:
			if err != nil || len(s.buckets) > MaxBuckets+1 {
				t.Errorf("%s: %v", step, err)
			}
		case !refused || !fault.Refused:
			t.Errorf("%s: %v, want a refusal", step, err)
		}
	}
}

func FuzzAsk(f *testing.F) {
	for _, s := range []string{
		"item=a&item=b&together=true&last=5m", "type=*&step=hour&tz=Asia/Kolkata&from=2026-01-01", "by=viewers&limit=10",
		"from=0&to=9999999999999&step=month", "last=all", "tz=Europe/Berlin&at=2026-01-01&last=30d", "item=%00%ff", "from=2026-01-01T00:00:00Z&to=x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		p := &parameters{values: values, now: parseNow}
		if q, err := p.question(); err == nil {
			s, err := q.When.resolve(q.Step, q.Zone, windows.Range{From: 100, To: 29_000_000})
			if err != nil {
				return
			}
			if s.From > s.To || len(s.buckets) < 2 || len(s.buckets) > MaxBuckets+1 || s.To > windows.MaxMinute {
				t.Errorf("%+v makes %+v with %d buckets", q, s.Range, len(s.buckets))
			}
		} else if _, ok := errors.AsType[*Fault](err); !ok {
			t.Error(err)
		}
		p = &parameters{values: values, now: parseNow}
		if q, err := p.top(); err == nil && (q.Limit < 1 || q.Limit > MaxRanks) {
			t.Errorf("%+v", q)
		}
	})
}
