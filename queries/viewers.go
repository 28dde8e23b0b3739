package queries

import (
	"context"
	"slices"
	"strings"

	"tidemark/windows"
)

// Viewers answers how many different users there were, and beside them the
// events: one answer for each item asked for.
func (e *Engine) Viewers(ctx context.Context, q Question) (Answers, error) {
	return e.answer(ctx, q, true)
}

// Counts answers how many events there were.
func (e *Engine) Counts(ctx context.Context, q Question) (Answers, error) {
	return e.answer(ctx, q, false)
}

// asking is a question while it is answered.
type asking struct {
	*view
	ctx     context.Context
	q       Question
	types   []string // asked for, or AllTypes alone
	there   []windows.Series
	span    *span
	viewers bool
}

func (e *Engine) answer(ctx context.Context, q Question, viewers bool) (answers Answers, err error) {
	if err := e.declared(q.Dimension); err != nil {
		return nil, err
	}
	subjects := e.subjects(q)
	v, err := e.open(ctx, wanted{
		series: func(s windows.Series) bool { return s.Dimension == "" || s.Dimension == q.Dimension },
		keys:   slices.Concat(subjects...),
		within: q.When,
		tokens: viewers,
	})
	if err != nil {
		return nil, err
	}
	defer v.close(&err)
	a := &asking{view: v, ctx: ctx, q: q, types: e.typesOf(q.Types), there: v.series(), viewers: viewers}
	if a.span, err = v.resolve(q.When, q.Step, q.Zone, v.kept); err != nil {
		return nil, err
	}
	if q.Step != "" {
		if err := a.bounded("item", len(subjects)); err != nil {
			return nil, err
		}
	}
	for i, keys := range subjects {
		answer := Answer{
			Subject: Subject{Type: strings.Join(a.types, ","), Dimension: q.Dimension},
			Extent:  v.extent(a.span),
			Step:    q.Step,
		}
		switch {
		case q.Together && len(q.Items) > 0:
			answer.Together = q.Items
		case len(q.Items) > 0:
			answer.Item = q.Items[i]
			if answer.Texts, err = v.texts(q.Items[i]); err != nil {
				return nil, err
			}
		}
		if q.HasValue {
			answer.Value = &q.Value
		}
		if err := a.fill(&answer, keys); err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// subjects returns the keys of each answer.
func (e *Engine) subjects(q Question) [][]key {
	if len(q.Items) == 0 {
		return [][]key{{site}}
	}
	var keys []key
	var each [][]key
	for _, name := range q.Items {
		k := itemKey(e.cfg.Hasher, name)
		if q.Together && slices.Contains(keys, k) {
			continue // it is in the union already
		}
		keys = append(keys, k)
		each = append(each, []key{k})
	}
	if q.Together {
		return [][]key{keys}
	}
	return each
}

// bounded refuses a question with too many series.
func (a *asking) bounded(of string, series int) error {
	if steps := len(a.span.buckets) - 1; series*steps > MaxCells {
		return refused("step", "%d steps for each of %d %ss are more than %d; ask for fewer, or for a longer step", steps, series, of, MaxCells)
	}
	return nil
}

// fill puts the numbers into an answer.
func (a *asking) fill(answer *Answer, keys []key) error {
	in := slice{dimension: a.q.Dimension, value: a.q.Value}
	if in.dimension != "" && !a.q.HasValue {
		in = slice{} // beside the values stands the whole, events without a value included
		if err := a.breakDown(answer, keys); err != nil {
			return err
		}
	}
	groups := groupsOf(a.there, a.types, in)
	total, series, err := a.numbers(keys, groups)
	if err != nil {
		return err
	}
	answer.Viewers, answer.Counts, answer.Series = a.viewersOf(total), total.counts(a.shown(total, groups), a.several()), series
	return a.hint(answer, keys, total)
}

// several reports whether there is a count of some types together.
func (a *asking) several() bool { return len(a.types) > 1 || a.all() }

func (a *asking) all() bool { return a.types[0] == AllTypes }

// shown returns the groups that an answer has counts of: of all types there are,
// those that have events, and at most MaxTypes.
func (a *asking) shown(t *tally, groups []group) []group {
	if !a.all() {
		return groups
	}
	groups = slices.DeleteFunc(slices.Clone(groups), func(g group) bool { return t.types[g.index].high == 0 })
	slices.SortStableFunc(groups, func(x, y group) int { return t.types[y.index].compare(t.types[x.index]) })
	return groups[:min(len(groups), MaxTypes)]
}

func (a *asking) viewersOf(t *tally) *Number {
	if !a.viewers {
		return nil
	}
	n := t.number()
	return &n
}

// maxTallies bounds how many buckets are worked on at once. A tally with many
// viewers takes 16 KiB.
const maxTallies = 2048

// numbers returns the tally of some keys together in the whole span, and their
// series if one is asked for.
func (a *asking) numbers(keys []key, groups []group) (total *tally, series []Bucket, err error) {
	total = newTally(len(groups), a.hasher.KeyID(), a.viewers)
	for part := range a.span.parts(max(1, maxTallies/len(keys))) {
		tallies, err := a.gather(a.ctx, part, keys, groups, a.viewers)
		if err != nil {
			return nil, nil, err
		}
		for b, t := range tallies[0] {
			for _, more := range tallies[1:] {
				if err := t.merge(more[b]); err != nil {
					return nil, nil, err
				}
			}
			if err := total.merge(t); err != nil {
				return nil, nil, err
			}
			if a.q.Step != "" {
				series = append(series, a.bucket(part.bucket(b), t, groups))
			}
		}
	}
	return total, series, nil
}

func (a *asking) bucket(r windows.Range, t *tally, groups []group) Bucket {
	if a.all() {
		groups = nil // the sum alone: types by the thousand would make the answer long
	}
	return Bucket{
		Start:    a.span.at(r.From),
		End:      a.span.at(r.To),
		Complete: a.complete(r),
		Viewers:  a.viewersOf(t),
		Counts:   t.counts(groups, a.several()),
	}
}
