package web

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections bounds how many connections there are. Where one comes that is too many,
// the one goes that has waited longest for its next request: so those who hold
// connections and send nothing keep nobody off. A connection that has become a socket
// does not count any more: LiveLimits bounds those.
type connections struct {
	most    int // 0: no limit
	metrics *Metrics

	mu      sync.Mutex
	open    int
	waiting list.List // of net.Conn, the longest first
	place   map[net.Conn]*list.Element
	cut     map[net.Conn]struct{} // that have to go, and are not open any more
}

func newConnections(most int, m *Metrics) *connections {
	return &connections{most: most, metrics: m, place: make(map[net.Conn]*list.Element), cut: make(map[net.Conn]struct{})}
}

// changed is what a http.Server calls whenever a connection gets into another state.
func (c *connections) changed(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.place[conn]; at != nil {
		c.waiting.Remove(at)
		delete(c.place, conn)
	}
	switch s {
	case http.StateNew:
		c.open++
		c.place[conn] = c.waiting.PushBack(conn)
	case http.StateIdle:
		c.place[conn] = c.waiting.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		if _, ok := c.cut[conn]; ok {
			delete(c.cut, conn)
		} else {
			c.open--
		}
	case http.StateActive:
	}
	if s == http.StateNew && c.most > 0 && c.open > c.most {
		c.makeRoom()
	}
	c.metrics.connected(c.open)
}

// makeRoom closes the connection that has waited longest, at worst the newest: mu is held.
func (c *connections) makeRoom() {
	at := c.waiting.Front()
	conn, ok := c.waiting.Remove(at).(net.Conn)
	if !ok {
		return
	}
	delete(c.place, conn)
	c.cut[conn] = struct{}{}
	c.open--
	_ = conn.Close() // the server, which reads from it, hears of it
	c.metrics.madeRoom()
}
