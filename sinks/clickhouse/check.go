package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// checkColumns compares the tables with what will be written to them. Columns
// beside those are nobody's business.
func checkColumns(ctx context.Context, conn driver.Conn, o Options) error {
	rows, err := conn.Query(ctx, "SELECT table, name, type FROM system.columns WHERE database = $1", o.Database)
	if err != nil {
		return explain(err)
	}
	have := make(map[string]map[string]string)
	if err := each(rows, func() error {
		var table, name, typ string
		err := rows.Scan(&table, &name, &typ)
		if have[table] == nil {
			have[table] = make(map[string]string)
		}
		have[table][name] = typ
		return err
	}); err != nil {
		return err
	}
	var wrong []string
	for _, t := range tables {
		if have[t.name] == nil {
			wrong = append(wrong, fmt.Sprintf("table %s is missing", t.name))
			continue
		}
		for _, c := range t.columns {
			switch typ, ok := have[t.name][c.name]; {
			case !ok:
				wrong = append(wrong, fmt.Sprintf("column %s of %s is missing", c.name, t.name))
			case typ != c.typ:
				wrong = append(wrong, fmt.Sprintf("column %s of %s is %s, must be %s", c.name, t.name, typ, c.typ))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return stopped("somebody has changed the database %s: %s; change it back (--clickhouse.migrate=print shows how it must be)", o.Database, strings.Join(wrong, "; "))
}

// checkDeployment makes sure that the database is this deployment's, and makes it so
// if it is nobody's. Of two that come at the same moment both may be refused, but
// never both taken.
func checkDeployment(ctx context.Context, conn driver.Conn, o Options) error {
	table := quote(o.Database) + "." + quote(deployment.name)
	owners := func() (owners []string, err error) {
		rows, err := conn.Query(ctx, "SELECT DISTINCT key, topic, consumer FROM "+table)
		if err != nil {
			return nil, explain(err)
		}
		err = each(rows, func() error {
			var key, topic, consumer string
			err := rows.Scan(&key, &topic, &consumer)
			owners = append(owners, describe(key, topic, consumer))
			return err
		})
		return owners, err
	}
	own := o.Deployment
	have, err := owners()
	if err != nil {
		return err
	}
	if len(have) == 0 {
		if err := conn.Exec(ctx, "INSERT INTO "+table+" (key, topic, consumer) VALUES ($1, $2, $3)", own.Key.String(), own.Topic, own.Consumer); err != nil {
			return explain(err)
		}
		if have, err = owners(); err != nil {
			return err
		}
	}
	we := describe(own.Key.String(), own.Topic, own.Consumer)
	if slices.Equal(have, []string{we}) {
		return nil
	}
	slices.Sort(have)
	return stopped("the database %s belongs to another deployment: it is of %s; this is %s. "+
		"Take another database (--clickhouse.database), or that deployment's hash key (--hash-key-file), topic and group",
		o.Database, strings.Join(have, " and of "), we)
}

func describe(key, topic, consumer string) string {
	if topic == "" {
		return fmt.Sprintf("hash key %s, journal", key)
	}
	return fmt.Sprintf("hash key %s, topic %q, group %q", key, topic, consumer)
}
