package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Scope is something that a key may do.
type Scope string

// The scopes.
const (
	Ingest Scope = "ingest" // send events
	Read   Scope = "read"   // ask questions
	Admin  Scope = "admin"  // everything
)

// Scopes are all there are.
var Scopes = []Scope{Ingest, Read, Admin}

// Key is what is kept of a key.
type Key struct {
	ID      string     `json:"id"`   // names it where it may be seen
	Name    string     `json:"name"` // what it is for; may be empty
	Hash    string     `json:"hash"` // SHA-256, hexadecimal
	Scopes  []Scope    `json:"scopes"`
	Created time.Time  `json:"created"`
	Revoked *time.Time `json:"revoked,omitempty"` // since when it is worth nothing
	Binding
}

// Binding narrows what a key may read. At most one of the three is given: an item,
// a value of a dimension, or a question. The zero value narrows nothing.
type Binding struct {
	Item      string `json:"item,omitempty"`
	Dimension string `json:"dimension,omitempty"`
	Value     string `json:"value,omitempty"`
	Question  string `json:"question,omitempty"` // path and query: /v1/top?last=1h
}

// prefix marks a key as one, for people and for programs that look for what should
// not have been published.
const prefix = "tidemark_"

// maxName is how long a name may be in bytes.
const maxName = 100

// New makes a key. text is the key itself, which cannot be had again.
func New(name string, scopes []Scope, b Binding, now time.Time) (k Key, text string, err error) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	text = prefix + base64.RawURLEncoding.EncodeToString(secret[:])
	hash := hashOf(text)
	k = Key{
		ID: "k" + hex.EncodeToString(hash[:5]), Name: name, Hash: hex.EncodeToString(hash[:]),
		Scopes: scopes, Created: now.UTC().Truncate(time.Second), Binding: b,
	}
	return k, text, k.validate()
}

func hashOf(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// validate says everything that is wrong with a key.
func (k *Key) validate() error {
	var faults []error
	fail := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if k.ID == "" {
		fail("id: must not be empty")
	}
	if len(k.Name) > maxName {
		fail("name: must be at most %d bytes", maxName)
	}
	if hash, err := hex.DecodeString(k.Hash); err != nil || len(hash) != sha256.Size {
		fail("hash: must be %d hexadecimal digits", 2*sha256.Size)
	}
	if len(k.Scopes) == 0 {
		fail("scopes: must be some of %s", Join(Scopes))
	}
	for _, s := range k.Scopes {
		if !slices.Contains(Scopes, s) {
			fail("scopes: must be some of %s, got %q", Join(Scopes), s)
		}
	}
	if (k.Dimension == "") != (k.Value == "") {
		fail("dimension: a key is bound to one value of a dimension, NAME=VALUE")
	}
	bindings := 0
	for _, b := range []string{k.Item, k.Dimension, k.Question} {
		if b != "" {
			bindings++
		}
	}
	if bindings > 1 {
		fail("item, dimension, question: a key is bound to one of them at most")
	}
	if k.Bound() && !slices.Equal(k.Scopes, []Scope{Read}) {
		fail("scopes: only a key that may read, and nothing else, can be bound")
	}
	if k.Question != "" {
		if u, err := url.Parse(k.Question); err != nil || !strings.HasPrefix(u.Path, "/v1/") || u.Host != "" || u.Query().Has("key") {
			fail("question: must be the path and the parameters of one, such as /v1/top?last=1h, got %q", k.Question)
		}
	}
	return errors.Join(faults...)
}

// May reports whether the key has a scope.
func (k *Key) May(s Scope) bool {
	return slices.Contains(k.Scopes, s) || slices.Contains(k.Scopes, Admin)
}

// ReadsOnly reports whether reading is all that the key may do.
func (k *Key) ReadsOnly() bool { return slices.Equal(k.Scopes, []Scope{Read}) }

// Bound reports whether the key is bound to anything.
func (b Binding) Bound() bool { return b != Binding{} }

// String says what it is bound to, for who holds the key; "" if to nothing.
func (b Binding) String() string {
	switch {
	case b.Item != "":
		return fmt.Sprintf("item %q", b.Item)
	case b.Dimension != "":
		return fmt.Sprintf("%s %q", b.Dimension, b.Value)
	}
	return b.Question
}

// byItem and byValue are the paths whose questions can be about one item only, and
// within one value of a dimension only.
var (
	byItem  = []string{"/v1/viewers", "/v1/counts", "/v1/outcomes"}
	byValue = []string{"/v1/viewers", "/v1/counts", "/v1/top"}
)

// Allows reports whether a request for a path with these parameters asks for nothing
// beyond what the binding allows.
func (b Binding) Allows(path string, values url.Values) bool {
	switch {
	case b.Item != "":
		items := values["item"]
		return slices.Contains(byItem, path) && len(items) > 0 &&
			!slices.ContainsFunc(items, func(item string) bool { return item != b.Item })
	case b.Dimension != "":
		return slices.Contains(byValue, path) &&
			slices.Equal(values["dimension"], []string{b.Dimension}) && slices.Equal(values["value"], []string{b.Value})
	case b.Question != "":
		u, err := url.Parse(b.Question)
		return err == nil && u.Path == path && u.Query().Encode() == values.Encode()
	}
	return true
}

// Join lists scopes for people.
func Join(scopes []Scope) string {
	var b strings.Builder
	for i, s := range scopes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}
