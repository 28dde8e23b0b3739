package queries

import (
	"net/url"
	"strings"
	"time"
)

// Check says what is wrong with a question, as far as that can be told without what
// there is to answer from. The error is a *Fault.
func Check(path string, values url.Values, now time.Time) error {
	p := &parameters{values: values, now: now}
	var err error
	switch path {
	case "viewers", "counts":
		_, err = p.question()
	case "top":
		_, err = p.top()
	case "outcomes":
		_, err = p.outcomes()
	case "items":
		_, err = p.items()
	case "status":
		p.known()
		err = p.err
	default:
		err = malformed("", "no question %q; there are %s", path, strings.Join(Paths, ", "))
	}
	return err
}
