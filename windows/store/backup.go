package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Backup makes a copy of the store as it is now, in a folder that must not exist,
// while seals and questions go on. Files are linked where the folder is on the same
// file system, so it takes little time and little room. The copy is a store: to
// bring it back, put it in the place of the old one.
func (s *Store) Backup(dir string) error {
	if err := s.logger.guard(func() error { return s.db.Checkpoint(dir, pebble.WithFlushedWAL()) }); err != nil {
		return fmt.Errorf("back up the store to %s: %w", dir, readError(err))
	}
	return nil
}
