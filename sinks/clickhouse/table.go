package clickhouse

import (
	"fmt"
	"strings"
)

// column is a column that rows are written to, and the type that it must have.
type column struct{ name, typ string }

// table is a table as rows are written to it. Tests hold it to the migrations.
type table struct {
	name    string
	columns []column
}

// Types that stand in several columns.
const (
	typeLow     = "LowCardinality(String)"
	typeMinute  = "DateTime('UTC')"
	typeRest    = "Enum8('none' = 0, 'type' = 1, 'value' = 2, 'type and value' = 3)"
	typeKind    = "Enum8('item' = 0, 'site' = 1, 'other' = 2)"
	typeLevel   = "Enum8('minute' = 0, 'hour' = 1, 'day' = 2)"
	typeViewers = "SimpleAggregateFunction(groupUniqArrayArray, Array(UInt32))"
	typeText    = "SimpleAggregateFunction(max, Tuple(DateTime64(3, 'UTC'), String))"
)

var (
	seriesColumns   = []column{{"type", typeLow}, {"dimension", typeLow}, {"value", typeLow}, {"rest", typeRest}, {"kind", typeKind}, {"item", "String"}}
	identityColumns = []column{{"epoch", "UInt64"}, {"partition", "UInt16"}, {"floor", typeMinute}, {"offset", "Int64"}}

	itemMinutes = table{"item_minutes", join(
		[]column{{"minute", typeMinute}}, seriesColumns,
		[]column{{"events", "UInt64"}, {"beyond", "Int64"}, {"epoch", "UInt64"}, {"partition", "UInt16"}, {"ahead", "Int32"}, {"offset", "Int64"}})}
	itemViewers = table{"item_viewers", join(
		[]column{{"level", typeLevel}, {"start", typeMinute}}, seriesColumns,
		[]column{{"viewers", typeViewers}})}
	items    = table{"items", []column{{"item", "String"}, {"title", typeText}, {"url", typeText}, {"image", typeText}}}
	outcomes = table{"outcomes", join(
		[]column{{"minute", typeMinute}, {"outcome", typeLow}, {"reason", typeLow}, {"records", "UInt64"}}, identityColumns)}
	seals = table{"seals", join(identityColumns, []column{
		{"log", "String"},
		{"from_floor", typeMinute},
		{"from_offset", "Int64"},
		{"replay", "Int64"},
		{"settings", "String"},
		{"head_offset", "Int64"},
		{"head_hash", "UInt64"},
		{"rows", "UInt64"},
	})}
	deployment = table{"deployment", []column{{"key", "String"}, {"topic", "String"}, {"consumer", "String"}}}

	tables = []table{itemMinutes, itemViewers, items, outcomes, seals, deployment}
)

func join(parts ...[]column) (all []column) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// insert returns the statement that writes rows. It names the columns: a table may
// have been given more.
func (t table) insert(database string) string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = quote(c.name)
	}
	return fmt.Sprintf("INSERT INTO %s.%s (%s)", quote(database), quote(t.name), strings.Join(names, ", "))
}

// quote returns a name as SQL has it. All names here are letters, digits and _.
func quote(name string) string { return "`" + name + "`" }
