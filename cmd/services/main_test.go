package main

import (
	"os"
	"strings"
	"testing"
)

// asProgram has the test binary be the program itself.
const asProgram = "TIDEMARK_SERVICES_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && os.Args[1] == launcherCommand {
		main()
	}
	os.Exit(m.Run())
}

// callProgram calls the program in this process.
func callProgram(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status, err := call(t.Context(), args, &out, &errs)
	if err != nil {
		errs.WriteString(err.Error())
	}
	return status, out.String(), errs.String()
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"upp"}, `unknown command "upp"`},
		{[]string{"up", "redis"}, `unknown service "redis": there are clickhouse, kafka`},
		{[]string{"kill"}, "name a service: clickhouse, kafka"},
		{[]string{"stop"}, "name a service: clickhouse, kafka"},
		{[]string{"status", "kafka"}, "takes no names"},
		{[]string{"down", "kafka"}, "takes no names"},
		{[]string{"up", "--folder", "x"}, "-folder"},
		{[]string{"run", "--dir", dir, "--"}, "no command follows --"},
	} {
		status, _, stderr := callProgram(t, c.args...)
		if status != exitUsage || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "services help") {
			t.Errorf("%q: status %d, %q; want status %d and %q", c.args, status, stderr, exitUsage, c.want)
		}
	}
}

func TestFolderWithoutServices(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"status", "start", "kill", "stop"} {
		args := []string{command, "--dir", t.TempDir()}
		if command != "status" {
			args = append(args, "kafka")
		}
		if status, _, stderr := callProgram(t, args...); status != exitFailed || !strings.Contains(stderr, "`services up`") {
			t.Errorf("%q: status %d, %q", args, status, stderr)
		}
	}
	if status, _, stderr := callProgram(t, "down", "--dir", t.TempDir()); status != exitDone {
		t.Errorf("down of nothing: status %d, %q", status, stderr)
	}
}

func TestToolMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, want := range map[string][]string{
		"clickhouse": {"npm is not installed", "install Node.js", "TIDEMARK_TEST_CLICKHOUSE"},
		"kafka":      {"mvn is not installed", "install Maven", "TIDEMARK_TEST_KAFKA"},
	} {
		status, _, stderr := callProgram(t, "up", "--dir", t.TempDir(), name)
		for _, part := range want {
			if status != exitFailed || !strings.Contains(stderr, part) {
				t.Errorf("up %s: status %d, %q, want %q in it", name, status, stderr, part)
			}
		}
	}
	if _, err := kafka.command(t.Context(), t.TempDir(), t.TempDir(), map[string]int{}); err == nil || !strings.Contains(err.Error(), "Java 17") {
		t.Errorf("start of Kafka without Java: %v", err)
	}
}
