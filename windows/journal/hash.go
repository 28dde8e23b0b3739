package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Hash returns the hash of the record at an offset of a partition: see Record.Hash.
// It fails with ErrTrimmed if that is no longer kept, and if it is beyond the end.
// It reads up to a segment.
func (j *Journal) Hash(ctx context.Context, partition int, offset int64) (uint64, error) {
	if partition < 0 || partition >= j.partitions {
		return 0, fmt.Errorf("read journal: there is no partition %d", partition)
	}
	from := make([]int64, j.partitions)
	for p := range from {
		from[p] = math.MaxInt64
	}
	from[partition] = offset
	j.mu.RLock()
	first, end := j.segments[0].offsets[partition], j.ends[partition]
	if offset < first || offset >= end {
		j.mu.RUnlock()
		err := ErrTrimmed
		if offset >= end {
			err = errors.New("it is beyond the end")
		}
		return 0, fmt.Errorf("read journal: offset %d of partition %d: %w", offset, partition, err)
	}
	r := j.readerLocked(from)
	j.mu.RUnlock()
	defer r.closeFile()
	var b Batch
	if err := r.Next(ctx, &b); err != nil {
		return 0, err
	}
	return b.Records[0].Hash(), nil
}
