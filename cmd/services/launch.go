package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startTime is how long a service may take until it answers. Seconds are usual;
// this is for a machine that has much else to do.
const startTime = 3 * time.Minute

// launch starts a service and waits until it answers. A first start on a port
// that somebody was quicker to take is tried on others.
func (i *instance) launch(ctx context.Context, s *service, p *placed) error {
	cache, err := cacheFolder("")
	if err != nil {
		return err
	}
	software, err := s.fetch(ctx, &fetcher{cache, i.progress})
	if err != nil {
		return err
	}
	first := p.Ports == nil
	const tries = 3
	for range tries {
		if first {
			if p.Ports, err = freePorts(s.ports); err != nil {
				return err
			}
		}
		err = i.launchOn(ctx, s, p, software)
		if !first || err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	if first && err != nil {
		p.Ports = nil
		err = errors.Join(err, i.save())
	}
	return err
}

func (i *instance) launchOn(ctx context.Context, s *service, p *placed, software string) error {
	dir := i.folder(s)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Not ended with ctx: it stays when this program has ended.
	cmd, err := s.command(context.WithoutCancel(ctx), software, dir, p.Ports)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of this terminal are not for it
	if i.attached {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // when the thread ends that started it: see run
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Known before it answers: whatever happens to this program, down finds it.
	if p.process, err = processOf(cmd.Process.Pid); err == nil {
		err = i.save()
	}
	if err == nil {
		err = await(ctx, s, dir, p.Ports, ended)
	}
	if err != nil {
		cmd.Process.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
		err = errors.Join(err, p.end(syscall.SIGKILL))
		said, _ := os.ReadFile(path)
		return fmt.Errorf("%w; its log ends:%s", err, tail(string(said)))
	}
	return nil
}

// await asks until the service answers, ends, or has had its time.
func await(ctx context.Context, s *service, dir string, ports map[string]int, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	const step = 50 * time.Millisecond
	var last error
	for {
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("it ended before it answered: %w", err)
			}
			return errors.New("it ended before it answered")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("no answer within %v: %w", startTime, last)
			}
			return errors.New("interrupted")
		case <-time.After(step):
		}
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := s.ask(once, dir, ports)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
	}
}
