package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tidemark/web"
	"tidemark/windows/ingest"
	"tidemark/windows/journal"
)

// importsName is the file in the data folder that says how far imports have been taken.
const importsName = "imports.json"

// imports knows how far each import into a running server has been taken, so that each
// of its batches is taken once, however often it is sent and whoever is killed meanwhile.
//
// Before a batch goes into the journal the file says which one, and where the journal
// ends; afterwards it says that it was taken. Where a crash came between, the journal
// tells: the first event of the batch has the import's name, and how far it is then.
type imports struct {
	path    string
	journal *journal.Journal
	logger  *slog.Logger

	mu    sync.Mutex // guards what follows, and is held while a batch is taken
	known map[string]importState
}

// importsFile is what the file says. In another journal nothing was taken.
type importsFile struct {
	Journal string                 `json:"journal"`
	Imports map[string]importState `json:"imports"`
}

// importState is how far an import is.
type importState struct {
	Taken   int64         `json:"taken"` // number of the last record
	Pending *pendingBatch `json:"pending,omitempty"`
}

// pendingBatch is one that the journal may have or not.
type pendingBatch struct {
	Through int64   `json:"through"` // number of its last record
	Ends    []int64 `json:"ends"`    // of the journal before it
}

// openImports reads what is known, and settles what a crash has left open.
func openImports(ctx context.Context, dir string, j *journal.Journal, logger *slog.Logger) (*imports, error) {
	i := &imports{path: filepath.Join(dir, importsName), journal: j, logger: logger, known: make(map[string]importState)}
	text, err := os.ReadFile(i.path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return nil, err
	}
	var file importsFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", i.path, err)
	}
	if file.Journal != i.id() || file.Imports == nil {
		return i, nil
	}
	i.known = file.Imports
	settled := true
	for name, s := range i.known {
		if s.Pending == nil {
			continue
		}
		taken, err := i.inJournal(ctx, name, s.Pending)
		if err != nil {
			return nil, fmt.Errorf("look for a batch of an import in the journal: %w", err)
		}
		if taken {
			s.Taken = s.Pending.Through
		}
		i.known[name] = importState{Taken: s.Taken}
		settled = false
	}
	if settled {
		return i, nil
	}
	return i, i.write()
}

func (i *imports) id() string { return fmt.Sprintf("%x", i.journal.ID()) }

// inJournal reports whether the journal has the batch.
func (i *imports) inJournal(ctx context.Context, name string, b *pendingBatch) (found bool, err error) {
	from, ends := slices.Clone(b.Ends), i.journal.Ends()
	for p, first := range i.journal.First() {
		if p < len(from) {
			from[p] = max(from[p], first)
		}
	}
	if len(from) != len(ends) {
		return false, fmt.Errorf("%s is of a journal with %d partitions, and this one has %d", i.path, len(from), len(ends))
	}
	left := int64(0)
	for p := range ends {
		left += max(0, ends[p]-from[p])
	}
	if left == 0 {
		return false, nil
	}
	r, err := i.journal.NewReader(from)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var batch journal.Batch
	for left > 0 {
		if err := r.Next(ctx, &batch); err != nil {
			return false, err
		}
		for _, record := range batch.Records {
			if ingest.ImportedOf(record.Payload) == (ingest.Imported{Name: name, Through: b.Through}) {
				return true, nil
			}
		}
		left -= int64(len(batch.Records))
	}
	return false, nil
}

// pending reports whether the journal may be asked for a batch: then it must be kept.
func (i *imports) pending() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.known {
		if s.Pending != nil {
			return true
		}
	}
	return false
}

// take calls accept for a batch, if it is the next one of its import.
func (i *imports) take(batch web.Import, accept func() (web.Receipt, error)) (web.Receipt, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.known[batch.Name]
	if batch.After != s.Taken {
		return web.Receipt{}, &web.Refusal{
			Status: 409, Taken: &s.Taken,
			Detail: fmt.Sprintf("the records of this import up to number %d are taken, so the next batch is the one after %d; nothing of this one was taken", s.Taken, s.Taken),
		}
	}
	i.known[batch.Name] = importState{Taken: s.Taken, Pending: &pendingBatch{Through: batch.Through, Ends: i.journal.Ends()}}
	if err := i.write(); err != nil {
		i.known[batch.Name] = s
		return web.Receipt{}, &web.Refusal{Status: 503, Detail: "events cannot be taken now: " + unavailable(err), RetryAfter: time.Second}
	}
	receipt, err := accept()
	refusal, refused := errors.AsType[*web.Refusal](err)
	switch {
	case err == nil:
		i.known[batch.Name] = importState{Taken: batch.Through}
	case refused && refusal.Status == 503:
		return receipt, err // after a crash it may be found in the journal
	default:
		i.known[batch.Name] = s
	}
	// It was taken, or not, whatever becomes of the file: that says where to look.
	if werr := i.write(); werr != nil {
		i.logger.Warn("how far an import is could not be written; the next batch, or the next start, tries again", "err", werr)
	}
	return receipt, err
}

// write writes the file, durably and whole or not at all.
func (i *imports) write() (err error) {
	text, err := json.Marshal(importsFile{i.id(), i.known})
	if err != nil {
		return err
	}
	dir := filepath.Dir(i.path)
	f, err := os.CreateTemp(dir, importsName+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), i.path); err != nil {
		return err
	}
	return syncDir(dir)
}
