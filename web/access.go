package web

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/web/keys"
)

// anybody is what a path needs that is open to all.
const anybody keys.Scope = ""

// visitor is who sends a request.
type visitor struct {
	address netip.Addr
	key     *keys.Key // nil: none is needed, or none that holds was given
	open    bool      // there are no keys: everybody may do all
}

// may reports whether the visitor has a scope.
func (v *visitor) may(s keys.Scope) bool {
	return s == anybody || v.open || v.key != nil && v.key.May(s)
}

// keyID names the visitor's key where it may be seen.
func (v *visitor) keyID() string {
	if v.key == nil {
		return ""
	}
	return v.key.ID
}

// visitorKey is that of a request's context.
type visitorKey struct{}

// visitorOf returns who sends a request that was admitted.
func visitorOf(r *http.Request) *visitor {
	v, _ := r.Context().Value(visitorKey{}).(*visitor)
	return v
}

// admit lets a request in that its sender may make, and is not one too many. The
// request that it returns knows its visitor, and its URL has no key any more.
func (a *api) admit(r *http.Request, needs keys.Scope) (*http.Request, error) {
	v := &visitor{address: a.Proxies.client(r)}
	refused := a.identify(r, v)
	r = withoutKey(r).WithContext(context.WithValue(r.Context(), visitorKey{}, v))
	if needs == anybody {
		return r, nil
	}
	if err := a.limits.request(v); err != nil { // whoever guesses keys too
		return r, err
	}
	if refused != nil {
		return r, refused
	}
	return r, v.permit(r, needs)
}

// identify finds the visitor's key. The error says why there is none that holds.
func (a *api) identify(r *http.Request, v *visitor) error {
	if a.Keys == nil || !a.Keys.Made() {
		v.open = true
		return nil
	}
	text, inURL, err := keyOf(r)
	if err != nil {
		return err
	}
	k := a.Keys.Find(text)
	switch {
	case k == nil && a.Keys.Broken() != nil:
		return &problem{Status: http.StatusServiceUnavailable, Detail: "this server cannot read its keys at present", cause: a.Keys.Broken(), retryAfter: time.Second}
	case k == nil:
		return unauthorized("invalid_token", "this server has no such key: look whether the whole of it was sent, and to the server that it was made for")
	case k.Revoked != nil:
		return unauthorized("invalid_token", fmt.Sprintf("the key %s was revoked at %s", k.ID, k.Revoked.Format(time.RFC3339)))
	case inURL && !k.ReadsOnly():
		return unauthorized("invalid_request", fmt.Sprintf("the key %s may do more than read, and must not stand in a URL, where it is seen and kept: send it as Authorization: Bearer KEY", k.ID))
	}
	v.key = k
	return nil
}

// permit refuses what the visitor's key does not allow.
func (v *visitor) permit(r *http.Request, needs keys.Scope) error {
	switch {
	case v.open:
		return nil
	case !v.key.May(needs):
		return forbidden("scope", fmt.Sprintf("the key %s may %s, and this needs one that may %s", v.key.ID, keys.Join(v.key.Scopes), needs))
	case r.URL.Path == livePath: // what is watched there is looked at one by one
		return nil
	}
	return v.within(r.URL.Path, r.URL.Query())
}

// within refuses what the visitor's key is not bound to.
func (v *visitor) within(path string, values url.Values) error {
	if v.key == nil || v.key.Allows(path, values) {
		return nil
	}
	return forbidden("binding", fmt.Sprintf("the key %s may read of %s only, and this asks for something else", v.key.ID, v.key))
}

// mayAsk refuses a question that is watched over a socket, and that the visitor may
// not ask.
func (v *visitor) mayAsk(q question) error { return v.within("/v1/"+q.path, q.values) }

// holds reports whether what let a visitor in does so still.
func (a *api) holds(v *visitor) bool {
	if v.open {
		return a.Keys == nil || !a.Keys.Made()
	}
	return v.key == nil || a.Keys.Holds(v.key)
}

// keyOf returns the key that a request brings.
func keyOf(r *http.Request) (text string, inURL bool, err error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, text, _ := strings.Cut(header, " ")
		if text = strings.TrimSpace(text); !strings.EqualFold(scheme, "Bearer") || text == "" {
			return "", false, unauthorized("invalid_request", "Authorization: must be Bearer KEY")
		}
		return text, false, nil
	}
	if text := r.URL.Query().Get("key"); text != "" {
		return text, true, nil
	}
	for _, offered := range websocket.Subprotocols(r) { // a page can send no other header with a socket
		if text, ok := strings.CutPrefix(offered, keyProtocol); ok {
			return text, false, nil
		}
	}
	return "", false, unauthorized("", "this server asks for a key: send it as Authorization: Bearer KEY, or one that may only read as ?key=KEY; `tidemark keys add` makes one")
}

// keyProtocol is what a key stands behind as a sub-protocol of a socket.
const keyProtocol = "tidemark.key."

// withoutKey takes the key out of a request's URL: no parameter of any question, and
// nothing for a log.
func withoutKey(r *http.Request) *http.Request {
	if r.URL.RawQuery == "" {
		return r
	}
	var kept []string
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != "key" {
			kept = append(kept, pair)
		}
	}
	u := *r.URL
	u.RawQuery = strings.Join(kept, "&")
	out := *r
	out.URL, out.RequestURI = &u, u.RequestURI()
	return &out
}

// unauthorized refuses a request for its key; fault is that of RFC 6750.
func unauthorized(fault, detail string) *problem {
	challenge := `Bearer realm="tidemark"`
	if fault != "" {
		challenge += fmt.Sprintf(", error=%q", fault)
	}
	return &problem{Status: http.StatusUnauthorized, Detail: detail, refused: "key", challenge: challenge}
}

// forbidden refuses what the sender may not do.
func forbidden(reason, detail string) *problem {
	return &problem{Status: http.StatusForbidden, Detail: detail, refused: reason}
}

// Proxies are the networks of proxies whose word on whom a request came from is taken.
type Proxies []netip.Prefix

// client returns the address that a request came from: of the connection, or where
// that is of a proxy, the last in X-Forwarded-For that is not.
func (p Proxies) client(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	address := from.Addr().Unmap().WithZone("")
	if err != nil || !p.trust(address) {
		return address
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(hops) {
		hop, err := parseHop(text)
		if err != nil {
			break // what is left of it was written by nobody who is known
		}
		if address = hop; !p.trust(hop) {
			break
		}
	}
	return address
}

func (p Proxies) trust(a netip.Addr) bool {
	for _, network := range p {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

// parseHop reads an address with or without a port.
func parseHop(text string) (netip.Addr, error) {
	text = strings.TrimSpace(text)
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap().WithZone(""), nil
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err
}

// ofLoopback reports whether a request came from this machine, and from no proxy.
func (v *visitor) ofLoopback() bool { return v.address.IsLoopback() }
