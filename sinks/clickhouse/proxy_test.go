package clickhouse

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a sink and the server, and cuts connections.
type proxy struct {
	listener net.Listener
	to       string
	wg       sync.WaitGroup

	mu      sync.Mutex
	answers int  // pieces that the server has sent
	cutAt   int  // the piece that is not passed on, and behind which nothing is; 0: none
	cuts    int  // done
	silent  bool // neither side is read from any more
	resumed *sync.Cond
	open    map[net.Conn]struct{}
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, open: make(map[net.Conn]struct{})}
	p.resumed = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.silence(false)
		p.mu.Lock()
		for c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() {
			p.copy(server, client, func() bool { return false })
			server.(*net.TCPConn).CloseWrite() // what was sent is still taken
		})
		p.wg.Go(func() {
			p.copy(client, server, p.cut)
			client.Close()
			io.Copy(io.Discard, server) // and answered, to nobody
			server.Close()
		})
	}
}

// copy passes on what comes, until stop says so for a piece.
func (p *proxy) copy(to, from net.Conn, stop func() bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			for p.silent {
				p.resumed.Wait()
			}
			p.mu.Unlock()
			if stop() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut reports whether the next piece of the server is the one to be lost.
func (p *proxy) cut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers++
	if p.answers != p.cutAt {
		return false
	}
	p.cuts++
	return true
}

// arm has the n-th piece from now on be cut, and returns how many were cut so far.
func (p *proxy) arm(n int) (cuts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers, p.cutAt = 0, n
	return p.cuts
}

func (p *proxy) silence(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = silent
	p.resumed.Broadcast()
}
