package store

import (
	"fmt"
	"log/slog"
	"math"
	"testing"

	"go.uber.org/goleak"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testHasher is the deployment of the tests.
var testHasher = sketches.NewHasher(sketches.Key{1, 2, 3})

var testLog = windows.LogID{0xab}

// testOptions opens a store of n partitions in dir.
func testOptions(dir string, partitions int) Options {
	return Options{
		Dir: dir, Create: true, KeyID: testHasher.KeyID(), Partitions: partitions,
		ViewTypes: []string{"view"}, Logger: slog.New(slog.DiscardHandler),
	}
}

// open opens a store that the test closes.
func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// begin begins the log of the tests.
func begin(tb testing.TB, s *Store) {
	tb.Helper()
	e := make([]uint64, s.Meta().Partitions)
	for i := range e {
		e[i] = uint64(i) + 100
	}
	if _, err := s.Begin(Log{ID: testLog, Names: []string{"test"}, Settings: "as it was", Started: 1, E: e}); err != nil {
		tb.Fatal(err)
	}
}

// feeder makes seals of events, as a partition of an engine does.
type feeder struct {
	*windows.Partition
	number int
	seals  []*windows.Seal
}

type feederConfig struct {
	limits windows.Limits
	dims   []string
	memory int
}

func newFeeder(number int, c feederConfig) *feeder {
	if c.limits.Items == 0 {
		c.limits = windows.Limits{Items: 1 << 20, Values: 1000}
	}
	if c.memory == 0 {
		c.memory = math.MaxInt
	}
	return &feeder{number: number, Partition: windows.NewPartition(windows.PartitionConfig{
		Log: testLog, Number: number, Position: windows.Position{E: uint64(number) + 100},
		Hasher: testHasher, Limits: c.limits, Dimensions: c.dims,
		Judge:  &windowstest.Judge{Generation: 1 << 40, MaxSkew: math.MaxInt64 / 4, MaxLateness: -1, Lateness: 30_000},
		Look:   func(int64) int64 { return 0 },
		Memory: c.memory, History: true,
	})}
}

// add takes records, and cuts where the partition says so.
func (s *feeder) add(tb testing.TB, events []windows.Event) {
	tb.Helper()
	if err := s.Add(events, s.cut); err != nil {
		tb.Fatal(err)
	}
}

func (s *feeder) cut(to windows.Pair) error {
	s.seals = append(s.seals, s.Cut(to))
	s.Stored()
	return nil
}

// end closes everything, if anything is open, after the record before offset end.
func (s *feeder) end(tb testing.TB, end int64) {
	tb.Helper()
	for to, due := s.End(end); due; to, due = s.End(end) {
		if err := s.cut(to); err != nil {
			tb.Fatal(err)
		}
	}
}

// recordOf makes an event of minute m. Negative users are nobody.
func recordOf(offset int64, m windows.Minute, typ, item string, user int, dims ...string) windows.Event {
	e := windows.Event{
		Offset: offset, Stamp: 1 << 41, Time: m.UnixMilli() + offset%60_000,
		Item: []byte(item), Type: []byte(typ), ItemHash: testHasher.Item([]byte(item)),
	}
	if user >= 0 {
		e.HasUser, e.User = true, testHasher.User(fmt.Append(nil, user))
	}
	for _, d := range dims {
		e.Dims = append(e.Dims, []byte(d))
	}
	return e
}
