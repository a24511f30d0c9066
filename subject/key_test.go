package subject_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stintlimit/stint/subject"
)

// secret has bytes whose base64 differs between the alphabets, and which
// print as letters where raw bytes are printed.
var secret = []byte("\xfb\xff\xfeTHE-SECRET-BYTES-OF-THIS-KEY-0123")

func mustParse(t testing.TB, version uint32, text string) subject.Key {
	t.Helper()
	k, err := subject.ParseKey(version, text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustRing(t testing.TB, active uint32, keys ...subject.Key) *subject.KeyRing {
	t.Helper()
	r, err := subject.NewKeyRing(active, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeyTextInAnyAlphabetIsOneKey(t *testing.T) {
	want := pseudonym(t, mustRing(t, 1, mustParse(t, 1, base64.StdEncoding.EncodeToString(secret))))
	for name, text := range map[string]string{
		"standard, unpadded": base64.RawStdEncoding.EncodeToString(secret),
		"url, padded":        base64.URLEncoding.EncodeToString(secret),
		"url, unpadded":      base64.RawURLEncoding.EncodeToString(secret),
		"space around":       " \t\r\n" + base64.StdEncoding.EncodeToString(secret) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := pseudonym(t, mustRing(t, 1, mustParse(t, 1, text))); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestBadKeysAreRefusedWithoutQuotingThem(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(secret)
	for name, tt := range map[string]struct {
		version uint32
		text    string
		want    string
	}{
		"version 0":        {0, good, "version 0"},
		"empty":            {3, "", "0 bytes: at least 32"},
		"short":            {3, base64.StdEncoding.EncodeToString(secret[:31]), "31 bytes: at least 32"},
		"not base64":       {3, "THE-SECRET!" + good, "not base64"},
		"two lines":        {3, good[:20] + "\n" + good[20:], "not base64"},
		"hexadecimal long": {3, strings.Repeat("ab", 4000), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := subject.ParseKey(tt.version, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if len(tt.text) > 8 && strings.Contains(err.Error(), tt.text[:8]) {
				t.Errorf("the error quotes the key: %v", err)
			}
		})
	}
}

func TestGeneratedKeysParseAndDiffer(t *testing.T) {
	a, b := subject.GenerateKey(), subject.GenerateKey()
	if a == b {
		t.Fatal("two generated keys are equal")
	}
	mustParse(t, 1, a)
}

func TestRingRefusesWhatItCannotUse(t *testing.T) {
	k1, k2 := mustParse(t, 1, subject.GenerateKey()), mustParse(t, 2, subject.GenerateKey())
	for name, tt := range map[string]struct {
		active uint32
		keys   []subject.Key
		want   string
	}{
		"no keys":       {1, nil, "no key has the active version 1"},
		"not loaded":    {3, []subject.Key{k1, k2}, "no key has the active version 3"},
		"version twice": {1, []subject.Key{k1, k1}, "version 1 is given twice"},
		"zero key":      {1, []subject.Key{k1, {}}, "no secret"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := subject.NewKeyRing(tt.active, tt.keys...)
			if r != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v; want %q", r, err, tt.want)
			}
		})
	}
}

func TestActivatingAnotherVersionChangesPseudonyms(t *testing.T) {
	k1, k2 := mustParse(t, 1, subject.GenerateKey()), mustParse(t, 2, subject.GenerateKey())
	ring := mustRing(t, 2, k2, k1)
	old, err := ring.Activate(1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := pseudonym(t, old), pseudonym(t, mustRing(t, 1, k1)); got != want || got.Version != 1 {
		t.Errorf("under version 1: got %v, want %v", got, want)
	}
	if got := pseudonym(t, ring); got == pseudonym(t, old) || got.Version != 2 || ring.ActiveVersion() != 2 {
		t.Errorf("under version 2: got %v", got)
	}
	if got := fmt.Sprint(ring.Versions()); got != "[1 2]" {
		t.Errorf("versions: %s", got)
	}
	if _, err := ring.Activate(3); err == nil {
		t.Error("a version that is not loaded was activated")
	}
}

func TestSecretsShowNowhere(t *testing.T) {
	text := base64.StdEncoding.EncodeToString(secret)
	key := mustParse(t, 7, text)
	ring := mustRing(t, 7, key)
	type holder struct {
		Key  subject.Key
		Ring *subject.KeyRing
		key  subject.Key
		ring *subject.KeyRing
	}
	h := holder{key, ring, key, ring}
	p, err := subject.NewPseudonymizer(ring, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, v := range []any{key, &key, ring, h, &h, []subject.Key{key}, map[string]any{"k": key}, p, *p} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		if b, err := json.Marshal(v); err == nil {
			out.Write(b)
		}
		if b, err := xml.Marshal(v); err == nil {
			out.Write(b)
		}
		for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
			slog.New(handler).Info("loaded", "value", v)
		}
	}
	_, err = subject.NewKeyRing(7, key, key)
	fmt.Fprintln(&out, err)
	for _, form := range []string{
		"SECRET", text, text[4:20], base64.URLEncoding.EncodeToString(secret),
		hex.EncodeToString(secret)[8:24], strings.ToUpper(hex.EncodeToString(secret))[8:24],
		strings.Trim(fmt.Sprintf("%d", secret[3:8]), "[]"), strings.Trim(fmt.Sprintf("%#v", secret[3:6]), "[]byte{}"),
	} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret shows as %q", form)
		}
	}
	if !strings.Contains(out.String(), "v7") {
		t.Error("the version does not show")
	}
}
