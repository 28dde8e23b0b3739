package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// The pages and scripts for browsers, as web/ui builds them.
//
//go:embed ui/dist
var built embed.FS

// pagePaths are the paths of the page: what each shows, its script takes from the URL.
var pagePaths = []string{"/{$}", "/item", "/status"}

// everywhere are the scripts that pages of others include (H7).
var everywhere = map[string]bool{"widget.js": true, "count.js": true, "client.js": true}

// pagePolicy is what the pages may do (H7): run their own script, ask their own server,
// show pictures of items, which may be anywhere. Titles and names come from events,
// so from anybody; even if one were taken as HTML, nothing of it would run.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: http:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"

// kinds are the content types by the ends of names; those that the machine knows vary.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// asset is a file that browsers get.
type asset struct {
	kind         string // content type
	tag          string // changes when the file does
	body, zipped []byte
	everywhere   bool
}

// assets reads the files of the pages. They are in the program: reading cannot fail
// but where it was built wrongly.
func assets() map[string]*asset {
	all := make(map[string]*asset)
	dist, err := fs.Sub(built, "ui/dist")
	if err != nil {
		panic(err)
	}
	files, err := fs.ReadDir(dist, ".")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		body, err := fs.ReadFile(dist, f.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		all[f.Name()] = &asset{
			kind:       kinds[path.Ext(f.Name())],
			tag:        `W/"` + hex.EncodeToString(sum[:12]) + `"`,
			body:       body,
			zipped:     zipped(body),
			everywhere: everywhere[f.Name()],
		}
	}
	return all
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // memory takes all of it
	_ = w.Close()
	return b.Bytes()
}

// pages serves the pages and scripts.
func (a *api) pages(mux *http.ServeMux) {
	files := assets()
	for name, f := range files {
		if name != "index.html" {
			mux.Handle("/"+name, a.handle("page", reading, anybody, f.send))
		}
	}
	for _, path := range pagePaths {
		mux.Handle(path, a.handle("page", reading, anybody, files["index.html"].send))
	}
}

// send sends the file, or that it has not changed.
func (f *asset) send(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Etag", f.tag)
	h.Set("Cache-Control", "no-cache") // asked for each time: a new version is there at once
	h.Add("Vary", "Accept-Encoding")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", pagePolicy)
	if f.everywhere {
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	body := f.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have gone
	return nil
}
