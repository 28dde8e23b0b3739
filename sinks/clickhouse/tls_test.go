package clickhouse

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"tidemark/sinks"
)

// The server's certificate is checked, and by which name.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	// A certificate for 127.0.0.1, and who vouches for it.
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	certificate := certified.TLS.Certificates[0]
	certified.Close()

	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	to := w.Addr[0]
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			wg.Go(func() { io.Copy(s, c); s.Close() })
			wg.Go(func() { io.Copy(c, s); c.Close() })
		}
	})
	defer wg.Wait()
	defer l.Close()

	w.Addr = []string{l.Addr().String()}
	w.TLS = &tls.Config{RootCAs: pool}
	s, err := New(w.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Resume(t.Context(), sinks.Progress{}); err != nil {
		t.Error(err)
	}
	r, o := newRandom(1), newOracle()
	seal := r.seal(minuteAt(2026, 1, 1, 0, 0), 5, 60)
	o.add(seal)
	if err := s.Deliver(t.Context(), []*sinks.Seal{seal}); err != nil {
		t.Error(err)
	}
	o.check(t, w)

	w.TLS = &tls.Config{}
	if err := w.fresh(t).Resume(t.Context(), sinks.Progress{}); err == nil {
		t.Error("took a certificate that nobody vouches for")
	}
}
