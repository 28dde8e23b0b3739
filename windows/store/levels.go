package store

import (
	"errors"
	"fmt"
	"time"

	"tidemark/windows"
)

// levelCount is how many levels there are. Part of the format.
const levelCount = 5

// The levels: each is rolled up from the one before. Part of the format.
const (
	levelMinute  = windows.LevelMinute
	levelQuarter = windows.Level(1) // every time zone's day is made of quarter hours
	levelHour    = windows.Level(2)
	levelDay     = windows.Level(3)
	levelEver    = windows.Level(4) // one period: all days that were rolled up into it
)

// policy is the table of levels.
var policy = [levelCount]struct {
	name string
	size windows.Minute // 0: without end
}{
	{"minute", 1},
	{"quarter", 15},
	{"hour", 60},
	{"day", 24 * 60},
	{"ever", 0},
}

// levelStart returns the first minute of the period of a level that m is in.
func levelStart(l windows.Level, m windows.Minute) windows.Minute {
	if l == levelEver {
		return 0
	}
	return m - m%policy[l].size
}

// Retention says for how long each level is kept, counted from the newest minute
// that is stored, never from a clock; 0 is for ever. A level is removed in whole
// periods of the next, once that has taken them in. Lifetime totals are kept for ever.
type Retention struct {
	Minute, Quarter, Hour, Day time.Duration
}

func (r Retention) levels() [levelCount]time.Duration {
	return [levelCount]time.Duration{r.Minute, r.Quarter, r.Hour, r.Day}
}

// validate names everything that is wrong: each level must be kept for as long as
// the one before, or a range in between would have no answer.
func (r Retention) validate() error {
	var errs []error
	below, name := time.Duration(0), ""
	for l, keep := range r.levels() {
		switch {
		case keep < 0:
			errs = append(errs, fmt.Errorf("retention of %s: must not be negative, got %v", policy[l].name, keep))
		case l > 0 && l < int(levelEver) && keep != 0 && (below == 0 || keep < below):
			errs = append(errs, fmt.Errorf("retention of %s: must be at least that of %s", policy[l].name, name))
		}
		below, name = keep, policy[l].name
	}
	return errors.Join(errs...)
}
