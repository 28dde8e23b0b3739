package sketches

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
)

func TestKeyTextRoundTrip(t *testing.T) {
	k := NewKey()
	if k == NewKey() {
		t.Fatal("two new keys are the same")
	}
	for _, text := range []string{k.Hex(), k.Hex() + "\n", " \t" + k.Hex() + "\r\n", strings.ToUpper(k.Hex())} {
		if got, err := ParseKey([]byte(text)); err != nil || got != k {
			t.Errorf("ParseKey(%q): %v", text, err)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	good := NewKey().Hex()
	for _, text := range malformedKeys(good) {
		_, err := ParseKey([]byte(text))
		if err == nil {
			t.Errorf("ParseKey(%q) took it", text)
			continue
		}
		if strings.Contains(err.Error(), good[:8]) {
			t.Errorf("the error tells the key: %v", err)
		}
	}
}

func malformedKeys(good string) []string {
	return []string{"", " ", good[:31], good + "0", good[:31] + "g", good[:16] + " " + good[16:], "0x" + good[2:], good + good}
}

func FuzzParseKey(f *testing.F) {
	good := Key{1, 2, 3}.Hex()
	for _, text := range append(malformedKeys(good), good, good+"\n") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := ParseKey(text)
		if err != nil {
			return
		}
		if again, err := ParseKey([]byte(k.Hex())); err != nil || again != k {
			t.Fatalf("%q was read and does not read back: %v", text, err)
		}
	})
}

// TestKeyIsNotTold tries what programs do with values by accident.
func TestKeyIsNotTold(t *testing.T) {
	k := NewKey()
	type config struct{ Key Key }
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", config{k})
		fmt.Fprintf(&out, verb+"\n", &config{k})
	}
	fmt.Fprintln(&out, k, k.String())
	b, err := json.Marshal(config{k})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	slog.New(slog.NewTextHandler(&out, nil)).Info("starting", "config", config{k}, "key", k)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("starting", "config", config{k}, "key", k)

	text := strings.ToLower(out.String())
	var numbers []string
	for _, b := range k[:8] {
		numbers = append(numbers, strconv.Itoa(int(b)))
	}
	for _, secret := range []string{k.Hex()[:12], strings.Join(numbers, ","), strings.Join(numbers, " ")} {
		if strings.Contains(text, secret) {
			t.Errorf("the key is told:\n%s", text)
		}
	}
}

func TestKeyIDs(t *testing.T) {
	a, b := Key{1}, Key{2}
	if a.ID() == b.ID() {
		t.Error("two keys have one id")
	}
	if NewHasher(a).KeyID() != a.ID() {
		t.Error("a hasher names another key")
	}
	if got := a.ID().String(); len(got) != 16 {
		t.Errorf("id %q, want 16 digits", got)
	}
}

func TestSameKey(t *testing.T) {
	if err := sameKey("viewers", 1, 1); err != nil {
		t.Error(err)
	}
	err := sameKey("viewers", 1, 0xff)
	if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "00000000000000ff") {
		t.Errorf("two keys: %v", err)
	}
}
