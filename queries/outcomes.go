package queries

import (
	"cmp"
	"context"
	"slices"

	"tidemark/windows"
)

// OutcomesAnswer says what became of records: of each exactly one thing, so that
// Outcomes sum to Records.
type OutcomesAnswer struct {
	Item string `json:"item,omitempty"`
	Extent
	Hint     string          `json:"hint,omitempty"`
	Records  Number          `json:"records"`
	Counted  Number          `json:"counted"` // in time or late
	Outcomes []OutcomeNumber `json:"outcomes"`
}

// OutcomeNumber is how many records had an outcome for a reason. Of an item,
// "counted" includes what was late.
type OutcomeNumber struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"` // of the malformed
	Records Number `json:"records"`
}

// OutcomesAnswers is one answer for each item asked for, in the order asked.
type OutcomesAnswers []OutcomesAnswer

// MarshalJSON writes one answer as it is, and several as {"items": […]}.
func (a OutcomesAnswers) MarshalJSON() ([]byte, error) { return marshalSeveral(a) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (a *OutcomesAnswers) UnmarshalJSON(b []byte) error {
	return unmarshalSeveral(b, (*[]OutcomesAnswer)(a))
}

// Outcomes answers how many records counted, and how many did not, by reason: all
// records, or those of some items. A malformed record has no item.
func (e *Engine) Outcomes(ctx context.Context, q OutcomesQuestion) (answers OutcomesAnswers, err error) {
	subjects := e.subjects(Question{Items: q.Items})
	v, err := e.open(ctx, wanted{
		series: func(s windows.Series) bool { return s.Dimension == "" || s.Dimension == windows.OutcomeDimension },
		keys:   slices.Concat(subjects...),
		within: q.When,
	})
	if err != nil {
		return nil, err
	}
	defer v.close(&err)
	kept := v.kept
	if len(q.Items) == 0 {
		// What has no usable time is booked under that of its arrival, which for
		// history is much later than any event.
		kept.To = max(kept.To, ceilMinute(q.When.Now))
	}
	s, err := v.resolve(q.When, "", q.Zone, kept)
	if err != nil {
		return nil, err
	}
	for i, keys := range subjects {
		a := OutcomesAnswer{Extent: v.extent(s), Outcomes: []OutcomeNumber{}}
		var byOutcome map[windows.OutcomeCount]count
		if len(q.Items) == 0 {
			byOutcome, err = v.outcomes(ctx, s)
		} else {
			a.Item = q.Items[i]
			byOutcome, err = v.itemOutcomes(ctx, s, keys)
		}
		if err != nil {
			return nil, err
		}
		a.fill(byOutcome)
		hints := []string{v.unwrittenHint()}
		if a.Records.High == 0 {
			hints = append([]string{v.outside(s)}, hints...)
		}
		a.Hint = joinHints(hints)
		answers = append(answers, a)
	}
	return answers, nil
}

// outcomes sums what became of all records of a span.
func (v *view) outcomes(ctx context.Context, s *span) (map[windows.OutcomeCount]count, error) {
	sums := make(map[windows.OutcomeCount]count)
	add := func(o windows.OutcomeCount) {
		n := count{o.Records, o.Records, o.Records}
		o.Records = 0
		n.add(sums[o])
		sums[o] = n
	}
	for _, at := range v.steps(s) {
		err := v.snap.Outcomes(at, func(_ windows.Part, o windows.OutcomeCount) error {
			add(o)
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for _, f := range v.live {
		if s.Contains(f.part.Start) {
			for _, o := range f.outcomes {
				add(o)
			}
		}
	}
	return sums, nil
}

// itemOutcomes sums what became of the records of an item.
func (v *view) itemOutcomes(ctx context.Context, s *span, keys []key) (map[windows.OutcomeCount]count, error) {
	sums := make(map[windows.OutcomeCount]count)
	there := v.series()
	for _, in := range append(slicesOf(there, windows.OutcomeDimension), slice{}) {
		o, ok := windows.OutcomeOf(in.value)
		if in.dimension == "" {
			o, ok = windows.Counted, true
		}
		if !ok {
			continue
		}
		groups := groupsOf(there, []string{AllTypes}, in)
		tallies, err := v.gather(ctx, s.whole(), keys, groups, false)
		if err != nil {
			return nil, err
		}
		n := sums[windows.OutcomeCount{Outcome: o}]
		n.add(tallies[0][0].total)
		sums[windows.OutcomeCount{Outcome: o}] = n
	}
	return sums, nil
}

// fill puts the sums into the answer: counted and late first, then the rest, the
// most first.
func (a *OutcomesAnswer) fill(sums map[windows.OutcomeCount]count) {
	type line struct {
		of windows.OutcomeCount
		n  count
	}
	var lines []line
	var records, counted count
	for o, n := range sums {
		if n.high == 0 {
			continue
		}
		records.add(n)
		if o.Outcome.Counts() {
			counted.add(n)
		}
		lines = append(lines, line{o, n})
	}
	slices.SortFunc(lines, func(x, y line) int {
		if c := x.of.Outcome.Counts(); c != y.of.Outcome.Counts() {
			if c {
				return -1
			}
			return 1
		}
		return cmp.Or(y.n.compare(x.n), cmp.Compare(x.of.Outcome, y.of.Outcome), cmp.Compare(x.of.Reason, y.of.Reason))
	})
	for _, l := range lines {
		a.Outcomes = append(a.Outcomes, OutcomeNumber{l.of.Outcome.String(), l.of.Reason, l.n.number()})
	}
	a.Records, a.Counted = records.number(), counted.number()
}
