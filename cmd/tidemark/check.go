package main

import (
	"context"
	"fmt"
	"path/filepath"

	"tidemark/windows"
	"tidemark/windows/journal"
	"tidemark/windows/store"
)

// checkJournal refuses a journal that ends before, or begins after, what the store of
// the data folder goes on from, and one that has another record where the newest seal
// has ended.
func checkJournal(ctx context.Context, s *store.Store, j *journal.Journal, log windows.LogID, data string) error {
	first, ends := j.First(), j.Ends()
	for p, pos := range s.Positions(log) {
		switch {
		case pos.To.S > ends[p]:
			return fmt.Errorf("the store does not belong to this journal: it has partition %d up to offset %d, and the journal ends at %d: one of the two is an older copy; bring back both of one time", p, pos.To.S, ends[p])
		case pos.R < first[p]:
			return fmt.Errorf("the store needs partition %d of the journal from offset %d on, and it begins at %d: bring back the files that are missing in %s", p, pos.R, first[p], filepath.Join(data, "journal"))
		case pos.To.S == 0 || pos.H.Offset < first[p]: // nothing is sealed, or what was is no longer kept
			continue
		}
		hash, err := j.Hash(ctx, p, pos.H.Offset)
		if err != nil {
			return err
		}
		if hash != pos.H.Hash {
			return fmt.Errorf("the store does not belong to this journal: at offset %d of partition %d the journal has another record than the one that was counted: one of the two is a copy that went on by itself; bring back both of one time", pos.H.Offset, p)
		}
	}
	return nil
}
