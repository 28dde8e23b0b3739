package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Origins are those of the web pages that may ask and send: "https://example.org".
// One that is "*" is every page.
type Origins []string

// allow reports whether a page of this origin may.
func (o Origins) allow(origin string) bool {
	return slices.Contains(o, "*") || slices.ContainsFunc(o, func(one string) bool { return strings.EqualFold(one, origin) })
}

// share lets a page of an allowed origin read the response.
func (o Origins) share(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Origin")
	if origin := r.Header.Get("Origin"); origin != "" && o.allow(origin) {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	}
}

// isPreflight reports whether a browser asks what a page may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight tells a browser what a page may send, which is remembered for an hour.
func (o Origins) preflight(w http.ResponseWriter, r *http.Request, methods []string) error {
	if !o.allow(r.Header.Get("Origin")) {
		return forbidden("origin", "pages of this origin may not use this server: --allow-origins names those that may")
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Encoding, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "3600")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayOpen reports whether whoever sends a request may open a socket: a page of an
// allowed origin or of this server, or no page.
func (a *api) mayOpen(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || a.Origins.allow(origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}

// sender refuses events that a page of another origin sends, unless it may.
func (a *api) sender(r *http.Request) error {
	if slices.Contains(a.Origins, "*") {
		return nil
	}
	if origin := r.Header.Get("Origin"); origin != "" && a.Origins.allow(origin) {
		return nil
	}
	if err := a.sameOrigin.Check(r); err != nil {
		return forbidden("origin", "a page of another origin sent this: --allow-origins names those that may")
	}
	return nil
}
