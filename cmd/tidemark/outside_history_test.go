package main_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An event of any age counts where its batch says that it is history, and not
// otherwise; and again so when the journal is read again after a crash.
func TestHistoryOverHTTP(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	old := time.Now().Add(-100 * 24 * time.Hour).Truncate(24 * time.Hour)
	for _, tt := range []struct {
		query string
		items []string
	}{{"", []string{"refused"}}, {"?history=true", []string{"old-1", "old-2"}}, {"?history=false", []string{"refused"}}} {
		var lines strings.Builder
		for i, item := range tt.items {
			fmt.Fprintf(&lines, `{"item":%q,"user":"u%d","id":"%s","time":%d}`+"\n", item, i, item, old.UnixMilli())
		}
		resp, err := http.Post(p.url+"/v1/events"+tt.query, "application/x-ndjson", strings.NewReader(lines.String()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK { // what is too old is known only when it is counted
			t.Fatalf("%q: %d", tt.query, resp.StatusCode)
		}
	}
	check := func() {
		t.Helper()
		settled(t, p.server, 2)
		o := make(map[string]uint64)
		for o["too_old"] < 1 || o["duplicate"] < 1 {
			var got struct {
				Outcomes []struct {
					Outcome string
					Records number
				}
			}
			p.ask(t, "/v1/outcomes", url.Values{"last": {"all"}}, &got)
			for _, of := range got.Outcomes {
				o[of.Outcome] = of.Records.Value
			}
		}
		var a answer
		p.ask(t, "/v1/viewers", url.Values{"from": {old.Format(time.DateOnly)}, "to": {old.AddDate(0, 0, 1).Format(time.DateOnly)}}, &a)
		if a.Viewers.Value != 2 || a.Counts["view"].Value != 2 {
			t.Errorf("of that day: %+v", a)
		}
	}
	check()
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		p.end(t, s)
		p = data.start(t)
		check()
	}
}
