package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tidemark/windows/journal"
	"tidemark/windows/store"
)

// newBackup returns the command that copies a data folder.
func newBackup(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy a data folder, of a running server too",
		Long: `Copy a data folder into DIR, which is made: of a running server with --server, else of a
folder that no process holds (--data).

The copy is a data folder, as the other was at one instant: with all that was acknowledged
before. To restore it, name it with --data. DIR is there once the copy is whole, synced and
was opened; one that broke off is not taken for one.

The copy has hash.key and keys.json too, where they lie in the data folder: whoever has them
can tell whether a person is among the viewers, so keep it as you keep the folder. A hash key
that --hash-key-file names is not in it: keep a copy of that file.`,
		Args: withArgs(1, 1, "the folder DIR to make"),
	}
	addSettings(cmd, "data", "hash-key-file", "server", "key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		logger := env.logger(slog.LevelWarn)
		from := packFolder
		if c.Server != "" {
			from = fetchBackup
		}
		begun := time.Now()
		m, err := makeBackup(cmd.Context(), args[0], env.stderr, logger, func(ctx context.Context) (io.ReadCloser, error) {
			return from(ctx, &c, logger)
		})
		if err != nil {
			if cmd.Context().Err() != nil {
				return errors.New("interrupted; there is no backup")
			}
			return err
		}
		fmt.Fprintf(env.stdout, "%s is the data folder as of %s: %s files, %s MB, in %.1f s\n",
			args[0], m.Made.Format(time.RFC3339), count(m.Files), count(m.Bytes>>20), time.Since(begun).Seconds())
		if !m.HashKey {
			fmt.Fprintln(env.stderr, "The hash key is not in it: keep a copy of the file that --hash-key-file names. Nothing can be found without it.")
		}
		return nil
	}
	return cmd
}

// makeBackup makes the folder target of what from returns: under another name until it
// is whole and was opened.
func makeBackup(ctx context.Context, target string, stderr io.Writer, logger *slog.Logger, from func(context.Context) (io.ReadCloser, error)) (m manifest, err error) {
	target, err = filepath.Abs(target)
	if err != nil {
		return m, err
	}
	if err := removeEmpty(target); err != nil {
		return m, err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return m, err
	}
	stream, err := from(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	dir, err := os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".partial-")
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	bar := newProgress(stderr)
	m, err = unpack(ctx, stream, dir, bar.copied)
	bar.end()
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := checkFolder(ctx, dir, logger); err != nil {
		return m, fmt.Errorf("backup: what came can't be opened, so it is removed: %w", err)
	}
	if err := os.Rename(dir, target); err != nil {
		return m, err
	}
	return m, syncDir(filepath.Dir(target))
}

// removeEmpty refuses a target that has anything in it, and removes an empty one: at
// its end the backup takes its place.
func removeEmpty(target string) error {
	entries, err := os.ReadDir(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: name a folder that is to be made", target)
	}
	if err := os.Remove(target); err != nil {
		return fmt.Errorf("%w: name a folder inside it", err)
	}
	return nil
}

// packFolder returns the backup of a data folder, which it holds until it is closed.
func packFolder(_ context.Context, c *Config, logger *slog.Logger) (io.ReadCloser, error) {
	s, err := openForReading(c, logger)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	p := &packing{PipeReader: r, done: make(chan error, 1)}
	go func() {
		w.CloseWithError(pack(c, c.Data, time.Now(), w))
		p.done <- s.Close()
	}()
	return p, nil
}

// packing is a backup that is made while it is read.
type packing struct {
	*io.PipeReader

	done chan error
}

// Close gives up the folder.
func (p *packing) Close() error { return errors.Join(p.PipeReader.Close(), <-p.done) }

// fetchBackup returns the backup of a server.
func fetchBackup(ctx context.Context, c *Config, _ *slog.Logger) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/v1/backup", http.NoBody)
	if err != nil {
		return nil, err
	}
	authorize(req, c)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return nil, err
	}
	return nil, refusalOf(c.Server, resp, body)
}

// checkFolder opens the store and the journal of a folder, which checks that they are
// whole, and that the one goes on from the other.
func checkFolder(ctx context.Context, dir string, logger *slog.Logger) (err error) {
	s, err := store.Open(store.Options{Dir: filepath.Join(dir, "store"), ReadOnly: true, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	j, err := journal.Open(journal.Options{Dir: filepath.Join(dir, "journal"), ReadOnly: true, Logger: logger})
	if errors.Is(err, journal.ErrNoJournal) {
		return nil // there were imports alone
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return checkJournal(ctx, s, j, j.ID(), dir)
}
