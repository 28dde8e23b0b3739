package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tidemark/sinks"
	"tidemark/sketches"
)

// address returns that of a real ClickHouse. `make test` brings one up.
func address(t testing.TB) string {
	t.Helper()
	addr := os.Getenv("TIDEMARK_TEST_CLICKHOUSE")
	if addr == "" {
		t.Skip("no ClickHouse: TIDEMARK_TEST_CLICKHOUSE is not set; run `make test`, or this by `bin/services run clickhouse -- go test …`")
	}
	return addr
}

var databases atomic.Int64

// world is a database of a test's own, on a real server.
type world struct {
	Options
	conn driver.Conn // the test's own
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldAt(t, address(t))
}

func worldAt(t testing.TB, addr string) *world {
	t.Helper()
	w := &world{Options: Options{
		Addr:       []string{addr},
		Database:   fmt.Sprintf("tidemark_test_%d_%d", os.Getpid(), databases.Add(1)),
		Deployment: Deployment{Key: sketches.KeyID(7)},
		Logger:     slog.New(slog.DiscardHandler),
	}}
	conn, err := ch.Open(&ch.Options{Addr: w.Addr, DialTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w.conn = conn
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(w.Database)+" SYNC"); err != nil {
			t.Logf("drop the test's database: %v", err)
		}
		conn.Close()
	})
	return w
}

// sink returns a sink that has been resumed.
func (w *world) sink(t testing.TB) *Sink {
	t.Helper()
	s := w.fresh(t)
	if err := s.Resume(t.Context(), sinks.Progress{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// fresh returns a sink that has not.
func (w *world) fresh(t testing.TB) *Sink {
	t.Helper()
	s, err := New(w.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// exec runs statements; DB. stands for the test's database.
func (w *world) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := w.conn.Exec(t.Context(), w.sql(s)); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func (w *world) sql(s string) string {
	out, err := qualify(s, w.Database)
	if err != nil {
		panic(err)
	}
	return out
}

// query returns the rows of a question, each as T.
func query[T any](t testing.TB, w *world, sql string, args ...any) []T {
	t.Helper()
	var out []T
	if err := w.conn.Select(t.Context(), &out, w.sql(sql), args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// one returns the only value of a question.
func one[T any](t testing.TB, w *world, sql string, args ...any) (v T) {
	t.Helper()
	if err := w.conn.QueryRow(t.Context(), w.sql(sql), args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func named(name string, value any) driver.NamedValue { return ch.Named(name, value) }

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return sortedBy(m, cmp.Compare[K]) }

func sortedBy[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}
