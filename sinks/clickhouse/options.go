package clickhouse

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"tidemark/sketches"
)

// Options are what a Sink needs.
type Options struct {
	Addr      []string    // HOST:PORT of the native protocol; one after the other is tried
	Database  string      // letters, digits and _
	User      string      // "default" where empty
	Password  string      // may be empty
	TLS       *tls.Config // nil: none
	Retention int         // days that rows are kept for; 0: for ever

	// Deployment is whose database it is.
	Deployment Deployment
	Logger     *slog.Logger
}

// Deployment is what a database belongs to. The counts of two would be added, and
// viewers hashed under two keys have nothing in common.
type Deployment struct {
	Key      sketches.KeyID
	Topic    string // of Kafka; empty for the journal
	Consumer string // the consumer group; empty for the journal
}

var databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Validate returns what is wrong, all of it.
func (o Options) Validate() error {
	var errs []error
	if len(o.Addr) == 0 {
		errs = append(errs, errors.New("addr: no address"))
	}
	if err := CheckDatabase(o.Database); err != nil {
		errs = append(errs, fmt.Errorf("database: %w", err))
	}
	if o.Retention < 0 || o.Retention > MaxRetention {
		errs = append(errs, fmt.Errorf("retention: must be from 0 to %d days, got %d", MaxRetention, o.Retention))
	}
	return errors.Join(errs...)
}

// CheckDatabase returns what is wrong with the name of a database.
func CheckDatabase(name string) error {
	if !databaseName.MatchString(name) {
		return fmt.Errorf("must be a name of at most 64 letters, digits and _, got %q", name)
	}
	return nil
}

// MaxRetention is a century, in days.
const MaxRetention = 36_500
