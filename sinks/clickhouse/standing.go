package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tidemark/sinks"
	"tidemark/windows"
)

// partition is one of a log.
type partition struct {
	epoch  uint64
	number int
}

// sealRow is the place of a seal as the table seals has it.
type sealRow struct {
	Epoch     uint64 `ch:"epoch"`
	Partition uint16 `ch:"partition"`
	Floor     int64  `ch:"floor"`
	Offset    int64  `ch:"offset"`
}

func rowOf(id windows.Identity) sealRow {
	return sealRow{id.E, uint16(id.Partition), seconds(id.To.F), id.To.S}
}

// checkSeals makes sure that what was delivered is there, and nothing that came after
// what there is here.
func checkSeals(ctx context.Context, conn driver.Conn, database string, have sinks.Progress) error {
	if err := checkDelivered(ctx, conn, database, have.Delivered); err != nil {
		return err
	}
	return checkBeyond(ctx, conn, database, have.Sealed)
}

// idsAtOnce keeps a query well below what a server takes.
const idsAtOnce = 1000

func checkDelivered(ctx context.Context, conn driver.Conn, database string, delivered []windows.Identity) error {
	for ids := range slices.Chunk(delivered, idsAtOnce) {
		var list []string
		for _, id := range ids {
			r := rowOf(id)
			list = append(list, fmt.Sprintf("(%d, %d, %d, %d)", r.Epoch, r.Partition, r.Floor, r.Offset))
		}
		var there []sealRow
		err := conn.Select(ctx, &there, "SELECT DISTINCT epoch, partition, toInt64(s.floor) AS floor, offset FROM "+quote(database)+"."+quote(seals.name)+
			" AS s WHERE (epoch, partition, toInt64(s.floor), offset) IN ("+strings.Join(list, ", ")+")")
		if err != nil {
			return explain(err)
		}
		for _, id := range ids {
			if !slices.Contains(there, rowOf(id)) {
				return stopped("seal %s was delivered to %s, and is gone: a table was dropped, or restored from an older backup: bring it back. "+
					"To go on without what is gone, start once with --clickhouse.addr=none, which drops what waits, and then again with the address", nameOf(id), database)
			}
		}
	}
	return nil
}

// checkBeyond makes sure that there are no seals of a log beyond those that are known
// here. Records that they hold would be sealed again in others, and count twice.
func checkBeyond(ctx context.Context, conn driver.Conn, database string, sealed []windows.Identity) error {
	newest := make(map[partition]windows.Pair)
	for _, id := range sealed {
		newest[partition{id.E, id.Partition}] = id.To
	}
	for ids := range slices.Chunk(sealed, idsAtOnce) {
		var epochs []string
		for _, id := range ids {
			epochs = append(epochs, strconv.FormatUint(id.E, 10))
		}
		var there []sealRow
		err := conn.Select(ctx, &there, "SELECT epoch, partition, toInt64(max(s.floor)) AS floor, max(s.offset) AS offset FROM "+quote(database)+"."+quote(seals.name)+
			" AS s WHERE epoch IN ("+strings.Join(epochs, ", ")+") GROUP BY epoch, partition")
		if err != nil {
			return explain(err)
		}
		var beyond []string
		for _, r := range there {
			to, ours := newest[partition{r.Epoch, int(r.Partition)}]
			if ours && (r.Floor > seconds(to.F) || r.Offset > to.S) {
				beyond = append(beyond, removal(database, r, to)...)
			}
		}
		if len(beyond) > 0 {
			slices.SortFunc(beyond, cmp.Compare)
			return stopped("the database %s has seals that were made after the state of this data folder: it was brought back from an older copy, and would count the same events again. "+
				"Remove what came after it, then this goes on by itself:\n%s", database, strings.Join(beyond, "\n"))
		}
	}
	return nil
}

// removal returns the statements that remove the seals of a partition after a pair.
// Who came stays in item_viewers: they came.
func removal(database string, r sealRow, to windows.Pair) (statements []string) {
	for _, t := range []struct{ table, floor string }{
		{itemMinutes.name, "toInt64(minute) + 60 * ahead"}, {outcomes.name, "toInt64(floor)"}, {seals.name, "toInt64(floor)"},
	} {
		statements = append(statements, fmt.Sprintf("DELETE FROM %s.%s WHERE epoch = %d AND partition = %d AND (%s > %d OR offset > %d);",
			quote(database), quote(t.table), r.Epoch, r.Partition, t.floor, seconds(to.F), to.S))
	}
	return statements
}
