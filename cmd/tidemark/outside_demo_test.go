package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// freeAddress returns an address of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// makeOnce runs a target of the Makefile that shows something, once, and returns what
// it shows. Nothing may be left behind.
func makeOnce(t *testing.T, target string) string {
	t.Helper()
	tmp := t.TempDir()
	cmd := exec.Command("make", "-C", "../..", target, "ONCE=1", "LISTEN="+freeAddress(t))
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "TIDEMARK_") }), "TMPDIR="+tmp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), "go-") }) {
		t.Errorf("left behind: %v %v", left, err)
	}
	return out.String()
}

// What `make run` tells people to try works as it says.
func TestMakeRun(t *testing.T) {
	out := makeOnce(t, "run")
	if !regexp.MustCompile(`(?m)^1 +video-0 .*How to draw an old lighthouse$`).MatchString(out) {
		t.Errorf("no video leads:\n%s", out)
	}
	_, tried, _ := strings.Cut(out, "\n$ ")
	var answers []string
	for line := range strings.Lines(tried) {
		if strings.HasPrefix(line, "{") {
			answers = append(answers, line)
		}
	}
	if len(answers) != 4 {
		t.Fatalf("ask, send and prove were answered by %d lines:\n%s", len(answers), out)
	}
	var proof struct{ Counts, Differ *int }
	decode(t, answers[3], &proof)
	if proof.Counts == nil || *proof.Counts < 100 || proof.Differ == nil || *proof.Differ != 0 {
		t.Errorf("prove says\n%s", answers[3])
	}
	var asked, counted answer
	if err := errors.Join(json.Unmarshal([]byte(answers[0]), &asked), json.Unmarshal([]byte(answers[2]), &counted)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if asked.Viewers == nil || asked.Viewers.Value == 0 || !strings.HasPrefix(answers[1], `{"accepted":1,`) || counted.Counts["view"].Value != 1 {
		t.Errorf("ask and send were answered by\n%s", strings.Join(answers, ""))
	}
}

// What `make shop` shows is what the shop sold.
func TestMakeShop(t *testing.T) {
	out := makeOnce(t, "shop")
	for _, says := range []string{`(?m)^all +245,903$`, `(?m)^85123A .* 56 +85$`, `(?m)^1 +47566 +208 +165$`, `Answering at http://127\.0\.0\.1:`} {
		if !regexp.MustCompile(says).MatchString(out) {
			t.Errorf("it does not show %s:\n%s", says, out)
		}
	}
}

// A demo whose folder is named keeps it, and ends well at the first Ctrl-C.
func TestDemoKeepsItsFolder(t *testing.T) {
	data := newFolder(t)
	cmd := call{args: data.args("demo", "--listen=127.0.0.1:0", "--backlog=20s", "--rate=100", "--dimensions=country")}.command(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make([]byte, 64<<10)
	n, err := out.Read(shown)
	if err != nil || !strings.Contains(string(shown[:n]), "video-0") {
		t.Errorf("it shows %s %v", shown[:n], err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = out.Read(shown)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs.String())
	}
	var top ranking
	data.start(t).ask(t, "/v1/top", url.Values{"dimension": {"country"}, "last": {"all"}}, &top)
	if len(top.Items) < 5 {
		t.Errorf("countries %+v", top.Items)
	}
}

// A ranking that is watched is printed again when it has changed, until Ctrl-C.
func TestWatchedRanking(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	cmd := call{args: []string{"top", "--watch", "--server", p.url, "--json", "--last=all"}}.command(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	events := liveEvents(3, 100)
	views := uint64(0)
	for _, e := range events {
		if e.Type == "view" {
			views++
		}
	}
	if status, body, err := send(p.url, events); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	answers := json.NewDecoder(out)
	for got := uint64(0); got != views; {
		var r ranking
		if err := answers.Decode(&r); err != nil {
			t.Fatal(err)
		}
		got = 0
		for _, i := range r.Items {
			got += i.Views.Value
		}
		if len(r.Items) == 10 {
			break // not all have a place
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if r := (call{args: data.args("top", "--watch")}).run(t); r.status != 2 || !strings.Contains(r.stderr, "--server") {
		t.Errorf("a folder is watched: exit status %d\n%s", r.status, r.stderr)
	}
}
