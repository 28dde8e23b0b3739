package clickhouse

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/template"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Migrations are files NNNN_name.sql; the number is the version that a database has
// behind it. A file that has been released never changes: what comes later is another.
// Every statement can be repeated, so that one of which only a part was done is done
// again.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one of them, for a database.
type migration struct {
	version    uint32
	name       string
	hash       string // of the file, in hexadecimal
	statements []string
}

// migrationsTable remembers what has been done.
const migrationsTable = "CREATE TABLE IF NOT EXISTS {{.}}.migrations (\n" +
	"    version UInt32,\n" +
	"    name    String,\n" +
	"    hash    String COMMENT 'SHA-256 of the file',\n" +
	"    at      DateTime('UTC') DEFAULT now()\n" +
	") ENGINE = ReplacingMergeTree(at)\n" +
	"ORDER BY version\n" +
	"SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"

// migrations returns all there are, by version.
func migrations(database string) ([]migration, error) {
	files, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	all := make([]migration, 0, len(files))
	for _, f := range files {
		text, err := fs.ReadFile(migrationFiles, "migrations/"+f.Name())
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(f.Name(), "_")
		version, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", f.Name(), err)
		}
		sql, err := qualify(string(text), database)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", f.Name(), err)
		}
		hash := sha256.Sum256(text)
		all = append(all, migration{uint32(version), strings.TrimSuffix(f.Name(), ".sql"), hex.EncodeToString(hash[:]), statements(sql)})
	}
	return all, nil
}

// qualify puts the name of the database where it belongs.
func qualify(sql, database string) (string, error) {
	t, err := template.New("").Parse(sql)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, quote(database))
	return b.String(), err
}

// statements splits a file. A statement ends with a semicolon at the end of a line.
func statements(sql string) []string {
	var out []string
	for s := range strings.SplitSeq(sql, ";\n") {
		// The comment above a statement goes with it; what is left behind the last is none.
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// done returns the statement that remembers a migration.
func (m migration) done(database string) string {
	return fmt.Sprintf("INSERT INTO %s.migrations (version, name, hash) VALUES (%d, '%s', '%s')", quote(database), m.version, m.name, m.hash)
}

// first returns the statements that come before all migrations.
func first(database string) ([]string, error) {
	table, err := qualify(migrationsTable, database)
	return []string{"CREATE DATABASE IF NOT EXISTS " + quote(database), table}, err
}

// Script writes the statements that make the database and all that is in it, or
// bring it up to date: for somebody who may run them where Tidemark may not. They
// can be run again.
func Script(w io.Writer, o Options) error {
	o.Addr = []string{"any"} // it goes to nobody
	if err := o.Validate(); err != nil {
		return err
	}
	all, err := migrations(o.Database)
	if err != nil {
		return err
	}
	script, err := first(o.Database)
	if err != nil {
		return err
	}
	for _, m := range all {
		script = append(script, m.statements...)
		script = append(script, m.done(o.Database))
	}
	if o.Retention > 0 {
		for _, t := range expiring {
			script = append(script, t.expire(o))
		}
	}
	_, err = io.WriteString(w, strings.Join(script, ";\n\n")+";\n")
	return err
}

// migrate brings the database up to date. Where nothing is to do it asks for no
// right but to read.
func migrate(ctx context.Context, conn driver.Conn, o Options) error {
	all, err := migrations(o.Database)
	if err != nil {
		return err
	}
	have, err := applied(ctx, conn, o.Database)
	if err != nil {
		return err
	}
	if have == nil {
		begin, err := first(o.Database)
		if err != nil {
			return err
		}
		if err := execute(ctx, conn, begin); err != nil {
			return err
		}
	}
	for _, m := range all {
		switch hash, ok := have[m.version]; {
		case !ok:
			if err := execute(ctx, conn, append(m.statements, m.done(o.Database))); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}
			o.Logger.Info("database migrated", "database", o.Database, "migration", m.name)
		case hash != m.hash:
			return stopped("migration %s was done by a program that has another file of that name: start that program, or a newer one", m.name)
		}
		delete(have, m.version)
	}
	for version := range have {
		return stopped("the database %s was migrated to version %d by a newer program: start that one", o.Database, version)
	}
	return nil
}

// applied returns the hashes of the migrations that a database has behind it, by
// version; nil if it does not even have the table.
func applied(ctx context.Context, conn driver.Conn, database string) (have map[uint32]string, err error) {
	var tables uint64
	err = conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = $1 AND name = 'migrations'", database).Scan(&tables)
	if err != nil || tables == 0 {
		return nil, explain(err)
	}
	rows, err := conn.Query(ctx, "SELECT version, hash FROM "+quote(database)+".migrations FINAL")
	if err != nil {
		return nil, explain(err)
	}
	have = make(map[uint32]string)
	err = each(rows, func() error {
		var version uint32
		var hash string
		err := rows.Scan(&version, &hash)
		have[version] = hash
		return err
	})
	return have, err
}

func execute(ctx context.Context, conn driver.Conn, statements []string) error {
	for _, s := range statements {
		if err := conn.Exec(ctx, s); err != nil {
			return explain(err)
		}
	}
	return nil
}

// each calls scan for every row, and closes rows: one that is left open keeps its
// connection.
func each(rows driver.Rows, scan func() error) (err error) {
	for err == nil && rows.Next() {
		err = scan()
	}
	if err == nil {
		err = rows.Err()
	}
	if closing := rows.Close(); err == nil {
		err = closing
	}
	return explain(err)
}
