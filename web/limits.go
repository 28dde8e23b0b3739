package web

import (
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tidemark/web/keys"
)

// Limits is what one client may do. A client is an address, of IPv6 a network of 64
// bits, with the key that it uses: so a key that stands in a page is not used up by
// one of its readers. Programs on this machine, and whoever may do everything, have
// no limits.
type Limits struct {
	Requests int // a second; 0: no limit
	Events   int // a second; 0: no limit
}

// clients remembers what each client has done lately.
type clients struct {
	limits Limits

	mu             sync.Mutex
	recent, before map[clientID]*spent // of the two latest generations
}

type clientID struct {
	key     string
	address netip.Addr
}

// spent is what is left to a client.
type spent struct{ requests, events *rate.Limiter }

// maxClients is how many clients a generation has. What is older than two
// generations is forgotten, so memory is bounded; whoever has so many addresses as
// to gain by that is not kept off by a limit for each.
const maxClients = 20_000

func newClients(l Limits) *clients {
	return &clients{limits: l, recent: make(map[clientID]*spent)}
}

// of returns what is left to a visitor, or nil if that is not limited.
func (c *clients) of(v *visitor) *spent {
	if c.limits == (Limits{}) || v.ofLoopback() || v.key != nil && v.key.May(keys.Admin) {
		return nil
	}
	who := clientID{v.keyID(), v.address}
	if who.address.Is6() {
		network, _ := who.address.Prefix(64) // of an address of 128 bits there is one
		who.address = network.Addr()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.recent[who]
	if s != nil {
		return s
	}
	if s = c.before[who]; s == nil {
		s = &spent{newLimiter(c.limits.Requests, burstSeconds*c.limits.Requests), newLimiter(c.limits.Events, burstSeconds*c.limits.Events)}
	}
	if len(c.recent) >= maxClients {
		c.before, c.recent = c.recent, make(map[clientID]*spent)
	}
	c.recent[who] = s
	return s
}

// burstSeconds is for how many seconds a client that was quiet may do at once what
// it may do in them.
const burstSeconds = 5

func newLimiter(perSecond, burst int) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), burst)
}

// request counts a request, or refuses it.
func (c *clients) request(v *visitor) error {
	s := c.of(v)
	if s == nil || s.requests.Allow() {
		return nil
	}
	return tooMany("requests", s.requests)
}

// beforeEvents refuses events of a client that has sent too many already. How many there
// are in a body is known once it was read, so what is too much is paid for later.
func (c *clients) beforeEvents(v *visitor) error {
	s := c.of(v)
	if s == nil || s.events.Limit() == rate.Inf || s.events.Tokens() > 0 {
		return nil
	}
	return tooMany("events", s.events)
}

// events counts events that were sent.
func (c *clients) events(v *visitor, n int) {
	s := c.of(v)
	if s == nil || s.events.Limit() == rate.Inf {
		return
	}
	for now := time.Now(); n > 0; n -= s.events.Burst() {
		s.events.ReserveN(now, min(n, s.events.Burst()))
	}
}

// tooMany refuses a client that has spent all it had.
func tooMany(what string, l *rate.Limiter) error {
	wait := time.Duration(math.Ceil((1-l.Tokens())/float64(l.Limit()))) * time.Second
	return &problem{
		Status: http.StatusTooManyRequests, refused: "limit_" + what, retryAfter: max(time.Second, wait),
		Detail: "more " + what + " than one client may make here; come again later",
	}
}
