package store

import (
	"testing"
	"time"
)

func TestRetentionIsChecked(t *testing.T) {
	for _, c := range []struct {
		r  Retention
		ok bool
	}{
		{Retention{}, true},
		{Retention{Minute: 48 * time.Hour}, true},
		{Retention{Minute: 1, Quarter: 2, Hour: 2, Day: 3}, true},
		{Retention{Minute: -1}, false},
		{Retention{Minute: 2, Quarter: 1}, false},
		{Retention{Quarter: 1}, false}, // minutes for ever, and quarter hours not
		{Retention{Minute: 1, Hour: 5}, false},
	} {
		if err := c.r.validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}
