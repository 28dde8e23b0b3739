package queries

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// Reply is an answer of any question. Its JSON is the API's.
type Reply interface {
	// Table returns the answer as a table, for a terminal or a spreadsheet.
	Table() Table
}

// Paths are the questions there are, as Ask knows them.
var Paths = []string{"viewers", "counts", "top", "outcomes", "items", "status"}

// Ask answers the question that a path below /v1/ and its parameters make. now is
// the present: the questions know no clock. A *Fault says what is wrong with the
// question; any other error is ours. The path is one of Paths.
func (e *Engine) Ask(ctx context.Context, path string, values url.Values, now time.Time) (Reply, error) {
	p := &parameters{values: values, now: now}
	switch path {
	case "viewers", "counts":
		q, err := p.question()
		if err != nil {
			return nil, err
		}
		if path == "viewers" {
			return e.Viewers(ctx, q)
		}
		return e.Counts(ctx, q)
	case "top":
		q, err := p.top()
		if err != nil {
			return nil, err
		}
		return e.Top(ctx, q)
	case "outcomes":
		q, err := p.outcomes()
		if err != nil {
			return nil, err
		}
		return e.Outcomes(ctx, q)
	case "items":
		q, err := p.items()
		if err != nil {
			return nil, err
		}
		return e.Items(ctx, q)
	case "status":
		p.known()
		if p.err != nil {
			return nil, p.err
		}
		return e.Status(ctx)
	default:
		return nil, malformed("", "no question %q; there are %s", path, strings.Join(Paths, ", "))
	}
}

func (p *parameters) question() (Question, error) {
	p.known("item", "together", "type", "dimension", "value", "from", "to", "last", "at", "step", "tz")
	q := Question{
		Items:    p.names("item", maxItemBytes, MaxItems),
		Together: p.boolean("together", false),
		Types:    p.names("type", maxTypeBytes, MaxTypes),
		Step:     choice(p, "step", Steps, ""),
		Zone:     p.zone(),
	}
	q.Dimension, q.Value, q.HasValue = p.dimension()
	q.When = p.when(q.Zone)
	return q, p.err
}

func (p *parameters) top() (TopQuestion, error) {
	p.known("by", "limit", "viewers", "type", "dimension", "value", "from", "to", "last", "at", "tz")
	q := TopQuestion{
		By:    choice(p, "by", []By{ByViews, ByViewers, ByRising}, ByViews),
		Limit: p.number("limit", 1, MaxRanks, 10),
		Types: p.names("type", maxTypeBytes, MaxTypes),
		Zone:  p.zone(),
	}
	if q.NoViewers = !p.boolean("viewers", true); q.NoViewers && q.By != ByViews {
		p.fail("viewers", "has to be true in a ranking by %s", q.By)
	}
	q.Dimension, q.Value, q.HasValue = p.dimension()
	q.When = p.when(q.Zone)
	if q.By == ByRising && (q.When.Last < minRising || q.When.Last > maxRising) {
		p.fail("last", "by=rising compares the last minutes or hours with those before: give last, from 1m to 6h")
	}
	return q, p.err
}

func (p *parameters) outcomes() (OutcomesQuestion, error) {
	p.known("item", "from", "to", "last", "at", "tz")
	q := OutcomesQuestion{Items: p.names("item", maxItemBytes, MaxItems), Zone: p.zone()}
	q.When = p.when(q.Zone)
	return q, p.err
}

func (p *parameters) items() (ItemsQuestion, error) {
	p.known("prefix", "limit")
	q := ItemsQuestion{Limit: p.number("limit", 1, MaxListed, 100)}
	if p.has("prefix") && p.values.Get("prefix") != "" { // an empty one is that of every item
		q.Prefix = p.one("prefix")
	}
	return q, p.err
}
