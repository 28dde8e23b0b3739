package main_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// crashFlags make a replay seal often, so that there is much to interrupt.
var crashFlags = []string{"replay", "--json", "--window-memory=2MiB", "--dimensions=country"}

// crashStream has duplicates, late events, events by nobody, and faults.
// The file stays until all tests are done.
func crashStream(t *testing.T) (path string, events []windowstest.Event, lines int) {
	t.Helper()
	events = windowstest.Shape{
		Seed: 21, Events: 250_000, Items: 3_000, Users: 30_000, Start: time.UnixMilli(manyStart), Span: time.Hour,
		NoUser: 0.1, Late: 0.3, LateBy: time.Hour, Duplicates: 0.1, IDs: true, OddNames: true,
		Types: []string{"view", "like"}, Dims: [][]string{{"DE", "AT", ""}},
	}.Stream()
	path = filepath.Join(built, "crash.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := windowstest.WriteCSV(f, events, "country"); err != nil {
		t.Fatal(err)
	}
	const faults = 1000
	if _, err := io.WriteString(f, strings.Repeat("soon,u,item,view,,,\n", faults)); err != nil {
		t.Fatal(err)
	}
	return path, events, len(events) + faults
}

// reference is an import that nothing interrupted, made once for all tests.
type reference struct {
	made     sync.Once
	path     string
	lines    int
	oracle   *windowstest.Oracle
	outcomes outcomes
	contents *windowstest.Merged
	answers  string
}

var uninterrupted reference

func newReference(t *testing.T) *reference {
	t.Helper()
	uninterrupted.made.Do(func() { uninterrupted.make(t) })
	if uninterrupted.answers == "" {
		t.Fatal("the import that nothing interrupts has failed in another test")
	}
	return &uninterrupted
}

func (r *reference) make(t *testing.T) {
	t.Helper()
	var events []windowstest.Event
	r.path, events, r.lines = crashStream(t)
	r.oracle = windowstest.NewOracle(windowstest.WithoutDuplicates(events), "country")
	data := newFolder(t)
	r.outcomes = parseOutcomes(t, tidemark(t, data.args(append(slices.Clone(crashFlags), r.path)...)...))
	r.outcomes.checkSum(t, r.lines)
	if r.outcomes.counted() != uint64(r.oracle.Events()) || r.outcomes.Outcomes["malformed"] != uint64(r.lines-len(events)) {
		t.Fatalf("%d events count: %v", r.oracle.Events(), r.outcomes.Outcomes)
	}
	r.contents = data.contents(t)
	e := newExaminer(data, r.oracle, 1)
	e.examine(t, 1)
	e.verdict(t)
	r.answers = everything(t, data, r.oracle)
}

// goOn makes the interrupted call again, and checks that it has come to the same.
func (r *reference) goOn(t *testing.T, what string, data folder) {
	t.Helper()
	again := call{args: data.args(append(slices.Clone(crashFlags), r.path)...)}.run(t)
	switch {
	case again.status == 0:
		r.checkOutcomes(t, what, parseOutcomes(t, again.stdout))
	case again.status == 1 && strings.Contains(again.stderr, "already"): // it was killed after the end
	default:
		t.Fatalf("%s: exit status %d\n%s", what, again.status, again.stderr)
	}
	if got := data.contents(t); got.Digest() != r.contents.Digest() {
		t.Errorf("%s: %s", what, r.contents.Diff(got))
	}
	if got := everything(t, data, r.oracle); got != r.answers {
		t.Errorf("%s: other answers: %s", what, firstDifference(r.answers, got))
	}
}

func (r *reference) checkOutcomes(t *testing.T, what string, out outcomes) {
	t.Helper()
	out.checkSum(t, r.lines)
	for o, n := range r.outcomes.Outcomes {
		if out.Outcomes[o] != n {
			t.Errorf("%s: %d records are %s, without an interruption %d", what, out.Outcomes[o], o, n)
		}
	}
	for reason, n := range r.outcomes.Reasons {
		if out.Reasons[reason] != n {
			t.Errorf("%s: %d records are malformed for %q, without an interruption %d", what, out.Reasons[reason], reason, n)
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%q, now %q", x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(x), len(y))
}

// killAt starts the replay and kills it once it has read a share of the file's
// lines, as its position in the file tells. It returns false if it was done before.
func (r *reference) killAt(t *testing.T, data folder, share float64) bool {
	t.Helper()
	info, err := os.Stat(r.path)
	if err != nil {
		t.Fatal(err)
	}
	target := int64(share * float64(info.Size()))
	cmd := call{args: data.args(append(slices.Clone(crashFlags), r.path)...)}.command(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is looked at below
		close(done)
	}()
	// The file is read twice: once for its hash, which names the import.
	hashed, before := false, int64(0)
	for {
		at := readPosition(cmd.Process.Pid, r.path)
		if at < before {
			hashed = true
		}
		before = max(at, 0)
		if hashed && at >= target {
			break
		}
		select {
		case <-done:
			if s := exitStatus(cmd.ProcessState); s != 0 {
				t.Fatalf("replay: exit status %d\n%s", s, errs.String())
			}
			return false
		case <-time.After(200 * time.Microsecond):
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	if s := exitStatus(cmd.ProcessState); s != -int(syscall.SIGKILL) {
		if s != 0 {
			t.Fatalf("replay: exit status %d\n%s", s, errs.String())
		}
		return false
	}
	return true
}

// readPosition returns where a process is in a file that it has open, -1 if it has not.
func readPosition(pid int, path string) int64 {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return -1
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "fd", fd.Name())); err != nil || to != path {
			continue
		}
		info, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "fdinfo", fd.Name()))
		if err != nil {
			return -1
		}
		if rest, ok := strings.CutPrefix(strings.SplitN(string(info), "\n", 2)[0], "pos:"); ok {
			if at, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil {
				return at
			}
		}
	}
	return -1
}

// Killed anywhere, by a real kill -9, and started again until it is done: the same
// outcomes, counts, registers and answers. Some imports are killed once, some again
// and again.
func TestKilledAnywhereItGoesOn(t *testing.T) {
	r := newReference(t)
	random := rand.New(rand.NewPCG(3, 3))
	kills := 50
	if soak() {
		kills = 1000
	}
	// Which shares of the file each import is killed at: all of them spread evenly
	// over 1–99 %, dealt to imports of one to fifteen deaths.
	var points []float64
	for i := range kills + kills/5 { // a few miss, because the end came first
		points = append(points, 0.01+0.98*(float64(i)+random.Float64())/float64(kills+kills/5))
	}
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	var reached []float64 // shares of the lines that were sealed when it was killed
	for len(points) > 0 {
		n := min(1+random.IntN(15), len(points))
		chain := points[:n]
		points = points[n:]
		slices.Sort(chain)
		data := newFolder(t)
		var died []string
		for _, share := range chain {
			if !r.killAt(t, data, share) {
				break
			}
			sealed := float64(0)
			if _, err := os.Stat(filepath.Join(data.dir, "store")); err == nil {
				sealed = float64(data.position(t)) / float64(r.lines)
			}
			reached = append(reached, share)
			died = append(died, fmt.Sprintf("%.1f %% (%.1f %% sealed)", 100*share, 100*sealed))
			if sealed > share+0.05 {
				t.Errorf("killed at %.3f of the lines, and %.3f are sealed", share, sealed)
			}
		}
		what := fmt.Sprintf("killed at %s", strings.Join(died, ", "))
		r.goOn(t, what, data)
		if t.Failed() {
			return
		}
	}
	slices.Sort(reached)
	t.Logf("killed at %d points, from %.1f %% to %.1f %% of the lines", len(reached), 100*reached[0], 100*reached[len(reached)-1])
	if len(reached) < kills {
		t.Errorf("killed at %d points, asked for %d", len(reached), kills)
	}
	for tenth := range 10 {
		if !slices.ContainsFunc(reached, func(s float64) bool { return int(s*10) == tenth }) {
			t.Errorf("never killed in the %d. tenth of the lines", tenth+1)
		}
	}
}

// crashSteps are the steps of a seal: see windows/store/FORMAT.md.
var crashSteps = []string{"apply.begin", "apply.texts", "apply.encoded", "apply.committed", "apply.shown"}

// Killed between the steps of a seal: of the first, and then again of one in the
// middle.
func TestKilledBetweenTheStepsOfASeal(t *testing.T) {
	r := newReference(t)
	deaths := 0
	for _, step := range crashSteps {
		data := newFolder(t)
		for _, n := range []int{1, 40} {
			killed := call{
				args:  data.args(append(slices.Clone(crashFlags), r.path)...),
				env:   []string{fmt.Sprintf("TIDEMARK_CRASH=%s:%d", step, n)},
				crash: true,
			}.run(t)
			if killed.status != -int(syscall.SIGKILL) {
				t.Fatalf("to be killed at %s, the %d. time: exit status %d\n%s", step, n, killed.status, killed.stderr)
			}
			deaths++
		}
		r.goOn(t, "killed at "+step, data)
	}
	t.Logf("killed %d times between the steps of a seal", deaths)
}

// maintenanceSteps are the steps of a roll-up and of a folding, which follow an
// import: see windows/store/FORMAT.md.
var maintenanceSteps = []string{"roll.marked", "roll.merged", "roll.committed", "roll.shown", "fold.merged", "fold.committed"}

// Killed between the steps of a roll-up or a folding: the same answers at once, and
// once the same call, or the next import, has done what was left.
func TestKilledBetweenTheStepsOfARollUp(t *testing.T) {
	r := newReference(t)
	before := writeEvents(t, "before.csv", []windowstest.Event{{Time: manyStart - 48*time.Hour.Milliseconds(), Item: "before", Type: "view"}})
	for _, step := range maintenanceSteps {
		for _, n := range []int{1, 2} {
			what := fmt.Sprintf("killed at %s, the %d. time", step, n)
			data := newFolder(t)
			killed := call{
				args:  data.args(append(slices.Clone(crashFlags), r.path)...),
				env:   []string{fmt.Sprintf("TIDEMARK_CRASH=%s:%d", step, n)},
				crash: true,
			}.run(t)
			if killed.status != -int(syscall.SIGKILL) {
				t.Fatalf("%s: exit status %d\n%s", what, killed.status, killed.stderr)
			}
			if got := everything(t, data, r.oracle); got != r.answers {
				t.Errorf("%s: other answers: %s", what, firstDifference(r.answers, got))
			}
			if n == 1 {
				data.replay(t, before)
			} else {
				again := call{args: data.args(append(slices.Clone(crashFlags), r.path)...)}.run(t)
				if again.status != 0 || !strings.Contains(again.stderr, "rolling up the rest") {
					t.Fatalf("%s: the same call: exit status %d\n%s", what, again.status, again.stderr)
				}
				r.checkOutcomes(t, what, parseOutcomes(t, again.stdout))
			}
			done := call{args: data.args(append(slices.Clone(crashFlags), r.path)...)}.run(t)
			if done.status != 1 || !strings.Contains(done.stderr, "imported already") {
				t.Fatalf("%s: once more: exit status %d\n%s", what, done.status, done.stderr)
			}
			if got := everything(t, data, r.oracle); got != r.answers {
				t.Errorf("%s, and rolled up after all: other answers: %s", what, firstDifference(r.answers, got))
			}
		}
	}
}

// SIGTERM ends an import in time, and the same call goes on.
func TestSIGTERMEndsAnImportThatGoesOn(t *testing.T) {
	r := newReference(t)
	data := newFolder(t)
	cmd := call{args: data.args(append(slices.Clone(crashFlags), r.path)...)}.command(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A zombie has no open files, so this ends too when the process does.
	for fd := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "fd"); readPosition(cmd.Process.Pid, r.path) < 0; {
		if files, err := os.ReadDir(fd); err != nil || len(files) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = cmd.Wait()                          // its status is looked at
	if s := exitStatus(cmd.ProcessState); s != 1 && s != 0 {
		t.Errorf("exit status %d", s)
	}
	r.goOn(t, "after SIGTERM", data)
}
