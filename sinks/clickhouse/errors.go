package clickhouse

import (
	"errors"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"tidemark/sinks"
)

// stopped returns an error that somebody must do something about.
func stopped(format string, args ...any) error {
	return fmt.Errorf("%w: %w", sinks.ErrStopped, fmt.Errorf(format, args...))
}

// lasting are ClickHouse's errors that do not pass by themselves, with what to do.
// Too many parts (252) is not among them: CH3.
var lasting = map[int32]string{
	16:  "a column is missing: add it again",
	20:  "a column is missing, or another was put in its place",
	36:  "the table does not take these rows",
	47:  "a column is missing: add it again",
	53:  "a column has another type: change it back",
	60:  "a table is missing: restore it, or remove its version from the table migrations to have it made again, empty",
	62:  "the server does not understand the statement: it may be too old",
	81:  "the database is missing: create it, or start without --clickhouse.migrate=print to have it created",
	192: "the user does not exist: see --clickhouse.user",
	193: "the password is wrong",
	194: "the user has a password: see --clickhouse.password",
	497: "the user may not do this: GRANT it, or let somebody who may run what --clickhouse.migrate=print prints",
	516: "user or password are wrong: see --clickhouse.user and --clickhouse.password",
}

// explain says what to do about an error of ClickHouse, where time does not help.
func explain(err error) error {
	exception, ok := errors.AsType[*ch.Exception](err)
	if !ok {
		return err
	}
	if advice, ok := lasting[exception.Code]; ok {
		return stopped("%s: %w", advice, err)
	}
	return err
}
