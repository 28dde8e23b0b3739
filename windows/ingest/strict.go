package ingest

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// strictJSON reads any object of JSON by a library that checks everything: the
// grammar, UTF-8, surrogates, names that stand twice at any depth, and at most
// 10,000 levels of nesting.
type strictJSON struct {
	dec  *jsontext.Decoder
	buf  bytes.Buffer
	name []byte // scratch for names with escapes
	at   *field // whose value is being read
}

func (s *strictJSON) init() { s.dec = jsontext.NewDecoder(&s.buf) }

// decode reads the only object in line into r. What is wrong with the JSON
// outweighs what is wrong with a field.
func (s *strictJSON) decode(line []byte, names map[string]*field, r *record) {
	r.reset()
	line = bytes.Trim(line, " \t\r\n")
	if len(line) == 0 || line[0] != '{' {
		r.reason = reasonNotObject
		if !utf8.Valid(line) {
			r.reason = reasonUTF8
		}
		return
	}
	// The decoder parses in the buffer itself, and so do the slices that it gives.
	s.buf = *bytes.NewBuffer(line)
	s.dec.Reset(&s.buf)
	if err := s.object(names, r); err != nil {
		r.reason = s.reason(err, line, names)
		return
	}
	if _, err := s.dec.ReadToken(); !errors.Is(err, io.EOF) {
		r.reason = reasonAfter
	}
	r.check()
}

// object reads the object. Where it fails, it leaves in s.at whose value it read.
func (s *strictJSON) object(names map[string]*field, r *record) error {
	s.at = ignoredField
	if _, err := s.dec.ReadToken(); err != nil { // the opening brace
		return err
	}
	for s.dec.PeekKind() == '"' {
		quoted, err := s.dec.ReadValue()
		if err != nil {
			return err
		}
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			if s.name, err = jsontext.AppendUnquote(s.name[:0], quoted); err != nil {
				return err
			}
			name = s.name
		}
		s.at = fieldOf(names, name)
		if err := s.value(s.at, r); err != nil {
			return err
		}
		s.at = ignoredField
	}
	_, err := s.dec.ReadToken() // the closing brace, or what is wrong instead
	return err
}

func (s *strictJSON) value(f *field, r *record) error {
	kind := s.dec.PeekKind()
	if kind == '{' || kind == '[' {
		r.set(f, anObject, nil)
		return s.dec.SkipValue()
	}
	v, err := s.dec.ReadValue()
	if err != nil {
		return err
	}
	switch kind {
	case '"':
		text := []byte(v[1 : len(v)-1])
		if f.kind != ignored && bytes.IndexByte(text, '\\') >= 0 {
			from := len(r.arena)
			if r.arena, err = jsontext.AppendUnquote(r.arena, v); err != nil {
				return err
			}
			text = r.arena[from:len(r.arena):len(r.arena)]
		}
		r.set(f, aString, text)
	case '0':
		k := anInt
		if bytes.ContainsAny(v, ".eE") {
			k = aNumber
		}
		r.set(f, k, v)
	case 'n':
		r.set(f, aNull, v)
	default:
		r.set(f, aBool, v)
	}
	return nil
}

// reason says what is wrong with the JSON of line, and in which field.
func (s *strictJSON) reason(err error, line []byte, names map[string]*field) string {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok:
		return reasonJSON
	case errors.Is(err, jsontext.ErrDuplicateName) && syntax.JSONPointer.Parent() == "":
		return fieldOf(names, []byte(syntax.JSONPointer.LastToken())).twice
	case errors.Is(err, jsontext.ErrDuplicateName):
		return reasonTwice
	case errors.Is(err, io.ErrUnexpectedEOF):
		return reasonCut
	}
	if r, size := utf8.DecodeRune(line[syntax.ByteOffset:]); r == utf8.RuneError && size == 1 {
		return s.at.utf8
	}
	return s.at.invalid
}
