package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range that systems give outgoing connections from: a
// port of that range is free now and taken a moment later, or while its service is
// down.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePorts returns a port that nobody listens on for each name.
func freePorts(names []string) (map[string]int, error) {
	ports := make(map[string]int, len(names))
	var held []net.Listener // all until the end, so that no two are the same
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, name := range names {
		const tries = 1000
		for range tries {
			port := firstPort + rand.IntN(lastPort-firstPort)
			l, err := net.Listen("tcp", loopback(port))
			if err != nil {
				continue
			}
			held = append(held, l)
			ports[name] = port
			break
		}
		if ports[name] == 0 {
			return nil, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
		}
	}
	return ports, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
