package clickhouse

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	dialTimeout = 2 * time.Second
	// readTimeout is how long the server may think. It writes an insert to disk before
	// it answers, and delays it when it has many parts to merge.
	readTimeout  = time.Minute
	writeTimeout = 30 * time.Second
	// connections are enough for the inserts of a delivery, which are open at the
	// same time, and a question beside them.
	connections = 6
)

// conns are the open connections to a server. The driver sets no deadline for
// writing, and looks for a context that is done only in places.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// conn is a connection on which a write does not last for ever. It has the methods
// of the real one, by which the driver sees that an idle connection is dead.
type conn struct {
	*net.TCPConn
	of *conns
}

// Write is that of net.Conn, with a deadline.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

// Close is that of net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}

func (c *conns) add(n *net.TCPConn) *conn {
	added := &conn{n, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[*conn]struct{})
	}
	c.open[added] = struct{}{}
	return added
}

// cut closes all connections under whoever uses them.
func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.open {
		n.TCPConn.Close() //nolint:errcheck // it is given up
	}
}

// connect returns the driver's pool. It dials nothing yet.
func connect(o Options, open *conns) (driver.Conn, error) {
	return ch.Open(&ch.Options{
		Addr: o.Addr,
		// Without a database: it may not be there yet. All names are qualified.
		Auth:         ch.Auth{Username: o.User, Password: o.Password},
		DialTimeout:  dialTimeout,
		ReadTimeout:  readTimeout,
		MaxOpenConns: connections,
		MaxIdleConns: connections,
		Compression:  compression(o.Addr),
		Settings: ch.Settings{
			"async_insert":       0, // what is acknowledged is there
			"insert_deduplicate": 0, // what was dropped, and is delivered again, is there again
			"optimize_on_insert": 0, // rows have been united where they can be; merges do the rest
		},
		DialContext: func(ctx context.Context, addr string) (net.Conn, error) {
			d := net.Dialer{Timeout: dialTimeout}
			n, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			c := open.add(n.(*net.TCPConn))
			if o.TLS == nil {
				return c, nil
			}
			t := tls.Client(c, o.tlsFor(addr))
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			if err := t.HandshakeContext(ctx); err != nil {
				c.Close() //nolint:errcheck // the handshake's error is the one to tell
				return nil, err
			}
			return t, nil
		},
	})
}

// compression is none on the way to this machine itself, which has no other limit
// than the processor.
func compression(addrs []string) *ch.Compression {
	for _, addr := range addrs {
		host, _, _ := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return &ch.Compression{Method: ch.CompressionLZ4}
		}
	}
	return nil
}

// tlsFor returns the settings for one of several servers.
func (o Options) tlsFor(addr string) *tls.Config {
	cfg := o.TLS.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && cfg.ServerName == "" {
		cfg.ServerName = host
	}
	return cfg
}
