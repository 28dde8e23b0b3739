package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// block is what of a table is gathered before it is sent.
type block interface {
	rows() int
	all() []buffer // in the order of the table's columns
}

// blockRows is how many rows go to the server in one block. It joins those of one
// INSERT into parts of about a million.
const blockRows = 1 << 16

// insert is one INSERT statement: it is begun with the first block, and its rows
// are there for good once send has returned nil.
type insert struct {
	table
	database string
	conn     driver.Conn
	block    block
	batch    driver.Batch // nil: not begun
}

// added must be called behind each row: it sends the block when it is full.
func (i *insert) added(ctx context.Context) error {
	if i.block.rows() < blockRows {
		return nil
	}
	if err := i.fill(ctx); err != nil {
		return err
	}
	if err := i.batch.Flush(); err != nil {
		return fmt.Errorf("%s: %w", i.name, explain(err))
	}
	return nil
}

// send ends the statement. Without rows there is none.
func (i *insert) send(ctx context.Context) error {
	if i.block.rows() > 0 {
		if err := i.fill(ctx); err != nil {
			return err
		}
	}
	if i.batch == nil {
		return nil
	}
	batch := i.batch
	i.batch = nil
	if err := batch.Send(); err != nil {
		return fmt.Errorf("%s: %w", i.name, explain(err))
	}
	return nil
}

// fill gives the block to the driver.
func (i *insert) fill(ctx context.Context) (err error) {
	if i.batch == nil {
		// Late: a connection that is cut while rows are gathered is cut for nothing.
		if i.batch, err = i.conn.PrepareBatch(ctx, i.insert(i.database)); err != nil {
			return fmt.Errorf("%s: %w", i.name, explain(err))
		}
	}
	there := i.batch.Columns()
	for n, b := range i.block.all() {
		want, have := i.columns[n], there[n]
		if have.Name() != want.name || string(have.Type()) != want.typ {
			return stopped("%s: column %s has the type %s, must be %s: change it back", i.name, have.Name(), have.Type(), want.typ)
		}
		if err := b.moveTo(have); err != nil {
			return fmt.Errorf("%s: column %s: %w", i.name, want.name, err)
		}
	}
	return nil
}

// abort gives up what has not been sent. Some of it may be there all the same.
func (i *insert) abort() {
	if i.batch != nil {
		i.batch.Abort() //nolint:errcheck // it is given up
		i.batch = nil
	}
}
