package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// expiry is a table whose rows go when they are old.
type expiry struct{ table, column string }

var expiring = []expiry{
	{itemMinutes.name, "minute"},
	{itemViewers.name, "start"},
	{outcomes.name, "minute"},
}

// ttl is the rule. It reckons in Date32: a DateTime beyond 2106 would wrap round,
// and what should be kept longest would go first.
func (e expiry) ttl(days int) string {
	return fmt.Sprintf("%s + toIntervalDay(%d)", e.ours(), days)
}

// ours is how a rule begins that this program made.
func (e expiry) ours() string { return "toDate32(" + e.column + ")" }

func (e expiry) expire(o Options) string {
	return fmt.Sprintf("ALTER TABLE %s.%s MODIFY TTL %s", quote(o.Database), quote(e.table), e.ttl(o.Retention))
}

// setRetention gives the tables the rule of the setting, where they have another.
func setRetention(ctx context.Context, conn driver.Conn, o Options) error {
	for _, e := range expiring {
		var engine string
		err := conn.QueryRow(ctx, "SELECT engine_full FROM system.tables WHERE database = $1 AND name = $2", o.Database, e.table).Scan(&engine)
		if err != nil {
			return explain(err)
		}
		has := strings.Contains(engine, "TTL "+e.ours())
		statement := ""
		switch {
		case o.Retention > 0 && !strings.Contains(engine, "TTL "+e.ttl(o.Retention)+" "):
			statement = e.expire(o)
		case o.Retention == 0 && has: // a rule that somebody else made is not ours to remove
			statement = fmt.Sprintf("ALTER TABLE %s.%s REMOVE TTL", quote(o.Database), quote(e.table))
		default:
			continue
		}
		if err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("retention: %w", explain(err))
		}
	}
	return nil
}
