package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Backup makes a copy of the store as it is now, in a folder that must not exist,
// while seals and questions go on. Files are linked where the folder is on the same
// file system, so it takes little time and little room. The copy is a store: to
// bring it back, put it in the place of the old one.
//
// Maintenance waits, and is waited for: Pebble notes first which files there are, and
// copies its log later. Files that were ingested in between would be missing, and the
// log would have the commit that speaks of them.
func (s *Store) Backup(dir string) error {
	s.maintenance.Lock()
	defer s.maintenance.Unlock()
	if err := s.logger.guard(func() error { return s.db.Checkpoint(dir, pebble.WithFlushedWAL()) }); err != nil {
		return fmt.Errorf("back up the store to %s: %w", dir, readError(err))
	}
	return nil
}
