package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// instance is a folder with services: of each its data, its log and, in the state
// file, its process and ports. Whoever has one holds the folder's lock.
type instance struct {
	dir      string
	state    map[string]*placed
	progress io.Writer
	attached bool // services end with this process
}

// placed is a service that has been started in the folder.
type placed struct {
	process
	Ports map[string]int `json:"ports"`
}

const (
	stateFile = "services.json"
	lockName  = "lock"
)

// inInstance calls f with the instance of a folder, under its lock. Only up and
// run make one.
func inInstance(ctx context.Context, dir, command string, f func(*instance) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if command == "up" || command == "run" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	} else if _, err := os.Stat(filepath.Join(dir, stateFile)); errors.Is(err, os.ErrNotExist) {
		if command == "down" {
			return nil
		}
		return fmt.Errorf("no services were started in %s: `services up` starts some", dir)
	}
	unlock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return errors.New("interrupted")
	}
	i := &instance{dir: dir, state: make(map[string]*placed), progress: io.Discard}
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(data, &i.state); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
		}
	}
	return f(i)
}

func (i *instance) folder(s *service) string { return filepath.Join(i.dir, s.name) }

// save writes the state file, whole or not at all.
func (i *instance) save() error {
	data, err := json.MarshalIndent(i.state, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(i.dir, stateFile)
	if err := os.WriteFile(path+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// up starts those of the services that do not run, here for the first time or again.
func (i *instance) up(ctx context.Context, chosen []*service) error {
	for _, s := range chosen {
		if i.state[s.name] == nil {
			i.state[s.name] = &placed{}
		}
	}
	return i.start(ctx, chosen)
}

// start starts those of the services that do not run, where they ran before. One that
// runs and does not answer is ended first: a crash of ClickHouse's library can leave its
// process behind with its ports closed.
func (i *instance) start(ctx context.Context, chosen []*service) error {
	for _, s := range chosen {
		p := i.state[s.name]
		if p == nil {
			return fmt.Errorf("%s was never up here: `services up --dir %s %s`", s.name, i.dir, s.name)
		}
		if p.alive() {
			if i.answers(ctx, s, p) {
				continue
			}
			if err := p.end(syscall.SIGKILL); err != nil {
				return fmt.Errorf("start %s: %w", s.name, err)
			}
		}
		if err := i.launch(ctx, s, p); err != nil {
			return fmt.Errorf("start %s: %w", s.name, err)
		}
	}
	return nil
}

// answers asks a service a few times, over a second.
func (i *instance) answers(ctx context.Context, s *service, p *placed) bool {
	for range 5 {
		asked, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := s.ask(asked, i.folder(s), p.Ports)
		cancel()
		if err == nil {
			return true
		}
		time.Sleep(200 * time.Millisecond)
	}
	return false
}

// end ends services by a signal; those that do not run are as wanted.
func (i *instance) end(chosen []*service, sig syscall.Signal) error {
	for _, s := range chosen {
		if p := i.state[s.name]; p != nil {
			if err := p.end(sig); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// down ends all services and removes what this program made in the folder, and the
// folder if nothing else is in it.
func (i *instance) down() error {
	// Nothing of the data is needed any more: no clean end, which takes Kafka seconds.
	if err := i.end(services, syscall.SIGKILL); err != nil {
		return err
	}
	for _, s := range services {
		if err := os.RemoveAll(i.folder(s)); err != nil {
			return err
		}
	}
	for _, name := range []string{stateFile, lockName} {
		if err := os.Remove(filepath.Join(i.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(i.dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}
