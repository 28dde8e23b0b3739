package main

import (
	"context"
	"os/exec"
)

// service is what the program knows of one of the services.
type service struct {
	name     string
	variable string   // of the environment, in which a test finds its address
	ports    []string // what it listens on; the first is the address

	// fetch returns the folder of the software, after getting it if need be.
	fetch func(ctx context.Context, f *fetcher) (string, error)
	// command prepares the folder of the service and returns its process, not
	// started.
	command func(ctx context.Context, software, dir string, ports map[string]int) (*exec.Cmd, error)
	// ask returns nil if the service answers, and is the one of this folder.
	ask func(ctx context.Context, dir string, ports map[string]int) error
}

// services are all there are, in the order in which they are shown.
var services = []*service{&clickHouse, &kafka}

func names() []string {
	out := make([]string, len(services))
	for i, s := range services {
		out[i] = s.name
	}
	return out
}
