package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"tidemark/windows/store"
)

// call runs the program and returns its exit status and what it printed.
func call(t *testing.T, environ []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = mainExit(environment{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, args: args, environ: environ})
	return status, out.String(), errs.String()
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// C3: each layer covers the ones below it, and `config` tells which one won.
func TestSettingsComeFromTheStrongestLayer(t *testing.T) {
	path := writeFile(t, "partitions: 2\nlateness: 2s\nview-types: [play, listen]\nopen: true\nretention:\n  minute: forever\n")
	environ := []string{"TIDEMARK_LATENESS=3s", "TIDEMARK_MAX_SKEW=3m", "TIDEMARK_CONFIG=" + path, "HOME=/"}
	status, out, errs := call(t, environ, "config", "--json", "--max-skew", "4m", "--dimensions", "country", "--dimensions=device,site")
	if status != exitDone {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	type row struct{ Value, From string }
	var got map[string]row
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]row{
		"max-skew":         {"4m", "flag --max-skew"},
		"dimensions":       {"country,device,site", "flag --dimensions"},
		"lateness":         {"3s", "environment TIDEMARK_LATENESS"},
		"partitions":       {"2", "file " + path},
		"view-types":       {"play,listen", "file " + path},
		"open":             {"true", "file " + path},
		"retention.minute": {"forever", "file " + path},
		"dedup-events":     {"262144", "default"},
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: got %+v, want %+v", name, got[name], w)
		}
	}
	if len(got) != len(settings(new(Config))) {
		t.Errorf("%d settings shown of %d", len(got), len(settings(new(Config))))
	}
}

// C2: every fault of every layer in one message, and status 2.
func TestEveryFaultIsListedAtOnce(t *testing.T) {
	path := writeFile(t, "lisen: x\nretention: {minutes: 1h, minute: 1m}\ndata: ''\n")
	environ := []string{"TIDEMARK_PARTITION=3", "TIDEMARK_LATENESS=soon"}
	status, out, errs := call(t, environ, "config", "--config", path, "--window-memory=12", "--partitions=0", "--view-types", "a,a", "--listen=here", "--server=ftp://x")
	if status != exitUsage || out != "" {
		t.Errorf("exit status %d, want %d; on stdout: %q", status, exitUsage, out)
	}
	for _, want := range []string{
		"unknown setting lisen in " + path + "; did you mean listen?",
		"unknown setting retention.minutes in " + path + "; did you mean retention.minute?",
		"unknown setting TIDEMARK_PARTITION in the environment; did you mean TIDEMARK_PARTITIONS?",
		`retention.minute: must be at least 1h0m0s, got "1m" (file ` + path + ")",
		"data: must not be empty (file " + path + ")",
		`lateness: must be a duration such as 90s, 24h, 7d or forever, got "soon" (environment TIDEMARK_LATENESS)`,
		`window-memory: must be a size of at least 1048576 bytes such as 256MiB, got "12" (flag --window-memory)`,
		`partitions: must be a whole number from 1 to 256, got "0" (flag --partitions)`,
		`view-types: must be different names of at most 64 bytes, separated by commas, got "a,a" (flag --view-types)`,
		`listen: must be HOST:PORT such as 127.0.0.1:8080, got "here" (flag --listen)`,
		`server: must be a URL such as http://127.0.0.1:8080, got "ftp://x" (flag --server)`,
		"See `tidemark config --help`.",
	} {
		if !strings.Contains(errs, want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Logf("printed:\n%s", errs)
	}
}

func TestWrongCalls(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flags", []string{"config", "--dta", "x", "--lisen=3"}, "unknown flag --dta; did you mean --data?\nunknown flag --lisen; did you mean --listen?\n"},
		{"a flag far from any", []string{"config", "--zzzzzzzz"}, "unknown flag --zzzzzzzz\n"},
		{"unknown short flag", []string{"config", "-x"}, "unknown shorthand flag: 'x' in -x\n"},
		{"unknown command", []string{"versionn"}, "unknown command \"versionn\"; did you mean version?\n"},
		{"argument too many", []string{"version", "x"}, "\"x\": not expected; version takes no arguments\n"},
		{"no such file", []string{"config", "--config", "nowhere.yaml"}, "file nowhere.yaml: open nowhere.yaml: no such file or directory\n"},
		{"not YAML", []string{"config", "--config", writeFile(t, "a: [")}, "yaml: "},
		{"a name twice", []string{"config", "--config", writeFile(t, "data: x\ndata: y\n")}, "\"data\" already defined"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, errs := call(t, nil, test.args...)
			if status != exitUsage || out != "" || !strings.Contains(errs, test.want) {
				t.Errorf("exit status %d, want %d\nstdout: %q\nstderr: %s\nwant: %s", status, exitUsage, out, errs, test.want)
			}
		})
	}
}

func TestDefaultsAreAllowed(t *testing.T) {
	cmd := &cobra.Command{}
	c, err := loadConfig(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.texts = nil
	want := Config{
		Data: "tidemark-data", Listen: "127.0.0.1:8080", ViewTypes: []string{"view"}, Partitions: 4, Rules: "none",
		Lateness: 30 * time.Second, MaxLateness: 24 * time.Hour, MaxSkew: time.Minute, Idle: 5 * time.Second, JournalRetention: 48 * time.Hour,
		DedupEvents: 1 << 18, MaxItemsPerWindow: 1_000_000, WindowMemory: 1 << 28,
		LimitRequests: 200, LimitEvents: 100_000, MaxConnections: 10_000,
		LiveQuestions: 50, LiveClients: 1000, LiveMessageBytes: 16 << 10,
	}
	want.Load.Rate, want.Load.Duration, want.Load.Seed, want.Load.Items = 200, forever, 1, 10_000
	want.Load.Speed, want.Load.Connections, want.Load.Batch = 1, 4, 1000
	const day = 24 * time.Hour
	want.ClickHouse.Database, want.ClickHouse.User, want.ClickHouse.Migrate, want.ClickHouse.Retention = "tidemark", "default", "run", forever
	want.Retention.Minute, want.Retention.Quarter, want.Retention.Hour, want.Retention.Day = 48*time.Hour, 35*day, 400*day, forever
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Who keeps minutes for longer need not name the larger levels; who names one that
// is kept for less than what is below it is told by the store.
func TestALevelIsKeptAsLongAsTheOneBelow(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		flags []string
		want  store.Retention // 0 is for ever
	}{
		{nil, store.Retention{Minute: 2 * day, Quarter: 35 * day, Hour: 400 * day}},
		{[]string{"--retention.minute=forever"}, store.Retention{}},
		{[]string{"--retention.minute=100d"}, store.Retention{Minute: 100 * day, Quarter: 100 * day, Hour: 400 * day}},
		{[]string{"--retention.day=500d", "--retention.hour=1d"}, store.Retention{Minute: 2 * day, Quarter: 35 * day, Hour: day, Day: 500 * day}},
	} {
		cmd := &cobra.Command{}
		addSettings(cmd, "retention.minute", "retention.quarter", "retention.hour", "retention.day")
		if err := cmd.ParseFlags(test.flags); err != nil {
			t.Fatal(err)
		}
		c, err := loadConfig(cmd, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.keep(); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.flags, got, test.want)
		}
	}
}

func TestClickHouseSettings(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--clickhouse.addr=", ""},
		{"--clickhouse.addr=none", ""},
		{"--clickhouse.addr=a:9000,[::1]:9001", ""},
		{"--clickhouse.addr=a:9000,none", "must be HOST:PORT"},
		{"--clickhouse.addr=a", "must be HOST:PORT"},
		{"--clickhouse.database=a-b", "must be a name of at most 64 letters"},
		{"--clickhouse.user=", "must not be empty"},
		{"--clickhouse.migrate=never", "must be run or print"},
		{"--clickhouse.retention=400d", ""},
		{"--clickhouse.retention=36h", "must be whole days"},
		{"--clickhouse.retention=1h", "must be at least 24h"},
		{"--clickhouse.retention=40000d", "at most 36500d"},
	} {
		status, _, errs := call(t, nil, "serve", "--clickhouse.migrate=print", c.flag)
		if c.want == "" && status != exitDone || c.want != "" && (status != exitUsage || !strings.Contains(errs, c.want)) {
			t.Errorf("%s: exit status %d, %s, want %q", c.flag, status, errs, c.want)
		}
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int{
		"1048576": 1 << 20, "1024KiB": 1 << 20, "3 MiB": 3 << 20, "2GiB": 2 << 30,
		"1048575": 0, "1023KiB": 0, "-1": 0, "": 0, "x": 0, "1MB": 0, "9223372036854775807GiB": 0, "99999999999GiB": 0,
	} {
		var got int
		if err := byteSize(&got, 1<<20)(text); (err != nil) != (want == 0) || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "7d": 7 * 24 * time.Hour, "0s": 0, "forever": forever,
		"-1s": -1, "1.5d": -1, "65536d": -1, "": -1, "d": -1,
	} {
		got := time.Duration(-1)
		if err := duration(&got, 0)(text); (err != nil) != (want < 0) || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.9.9.9:1": true, "[::1]:80": true, "localhost:80": true,
		":8080": false, "0.0.0.0:80": false, "[::]:80": false, "192.0.2.1:80": false, "example.org:80": false, "": false,
	} {
		if got := loopback(listen); got != want {
			t.Errorf("%q: got %v, want %v", listen, got, want)
		}
	}
}
