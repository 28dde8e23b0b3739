package sketches

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Key is the secret of a deployment. Every hash in a sketch is made under it, so
// that nobody outside can choose names that collide. It never prints itself: ask
// for Hex where it is to be written down.
type Key [16]byte

// KeyID is the public name of a Key. It tells two keys apart and nothing else.
type KeyID uint64

// ErrKey is wrapped by every refusal to bring together what was hashed under two
// different keys: the result would count every person once a key.
var ErrKey = errors.New("sketches of two hash keys cannot be merged")

// NewKey returns a fresh random key.
func NewKey() Key {
	var k Key
	rand.Read(k[:]) // never returns an error: it ends the program instead
	return k
}

// ParseKey reads a key as Hex writes it: 32 hexadecimal digits, with white space
// around them allowed, as in a file. The error does not repeat what it was given.
func ParseKey(text []byte) (Key, error) {
	var k Key
	text = bytes.TrimSpace(text)
	if len(text) != hex.EncodedLen(len(k)) {
		return Key{}, fmt.Errorf("hash key: %d characters; want %d hexadecimal digits", len(text), hex.EncodedLen(len(k)))
	}
	if _, err := hex.Decode(k[:], text); err != nil {
		return Key{}, fmt.Errorf("hash key: not all of its %d characters are hexadecimal digits", len(text))
	}
	return k, nil
}

// Hex returns the key in the form that ParseKey reads: a secret.
func (k Key) Hex() string { return hex.EncodeToString(k[:]) }

// ID returns the key's public name.
func (k Key) ID() KeyID { return KeyID(binary.LittleEndian.Uint64(k.derive("key id"))) }

// derive returns 32 bytes that are as good as random to whoever lacks the key,
// different ones for every purpose. It is HMAC-SHA-256, and not the hash that
// users enter by, since a user could be called like a purpose.
func (k Key) derive(purpose string) []byte {
	mac := hmac.New(sha256.New, k[:])
	io.WriteString(mac, "tidemark "+purpose) //nolint:errcheck // a hash takes everything
	return mac.Sum(nil)
}

const redacted = "(hash key)"

// String does not tell the key.
func (k Key) String() string { return redacted }

// Format does not tell the key, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) } //nolint:errcheck // the printer's own buffer

// MarshalText does not tell the key, so that no logger or encoder does.
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// String returns the id as 16 hexadecimal digits.
func (id KeyID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// sameKey returns nil if what is about to be merged was hashed under one key.
func sameKey(what string, into, from KeyID) error {
	if into == from {
		return nil
	}
	return fmt.Errorf("%s: %w: %s into %s", what, ErrKey, from, into)
}
