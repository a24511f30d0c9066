package subject_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

func pseudonymizer(t testing.TB, r *subject.KeyRing) *subject.Pseudonymizer {
	t.Helper()
	p, err := subject.NewPseudonymizer(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pseudonym is that of one fixed subject.
func pseudonym(t testing.TB, r *subject.KeyRing) stint.Pseudonym {
	return of(t, pseudonymizer(t, r), tuple{"principal", "alice", ""})
}

type tuple struct{ kind, identity, operation string }

func of(t testing.TB, p *subject.Pseudonymizer, s tuple) stint.Pseudonym {
	t.Helper()
	got, err := p.Pseudonym(subject.Kind(s.kind), s.identity, s.operation)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// reference computes a pseudonym as design says it, the slow way.
func reference(secret []byte, version uint32, s tuple) stint.Pseudonym {
	mac := hmac.New(sha256.New, secret)
	for _, part := range []string{s.kind, s.identity, s.operation} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	p := stint.Pseudonym{Version: version}
	copy(p.Digest[:], mac.Sum(nil))
	return p
}

// The text of a pseudonym is in every store: it must never change.
func TestPseudonymsNeverChange(t *testing.T) {
	key := mustParse(t, 1, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	p := pseudonymizer(t, mustRing(t, 1, key))
	for s, want := range map[tuple]string{
		{"principal", "alice", ""}:                  "v1:KpYSShfs1dPP-46bRuJnxw",
		{"client-ip", "2001:db8::/64", ""}:          "v1:xNjPGLa2Z8hIKTYPrC0w4A",
		{"api-key", "k\x00\n%3A🔑", "orders.create"}: "v1:VQTg2OQqyMVLVqwi_vuSaw",
	} {
		if got := of(t, p, s).String(); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestAgreesWithTheDefinition(t *testing.T) {
	raw := make([]byte, 32)
	for i := range raw {
		raw[i] = byte(i)
	}
	p := pseudonymizer(t, mustRing(t, 1, mustParse(t, 1, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")))
	for _, n := range []int{1, 15, 503, 504, 505, 512, 1016, 1017, 5000} {
		s := tuple{"client-ip", strings.Repeat("x", n), strings.Repeat("y", n)}
		if got, want := of(t, p, s), reference(raw, 1, s); got != want {
			t.Errorf("%d bytes: got %v, want %v", n, got, want)
		}
	}
}

// Case C49 of the field.
func TestDifferentTuplesNeverMeet(t *testing.T) {
	tuples := []tuple{
		{"principal", "did:key:abc", "s"}, {"principal", "did:key", "abc:s"},
		{"principal", "a", "b|c"}, {"principal", "a|b", "c"},
		{"principal", "ab", "c"}, {"principal", "a", "bc"}, {"principal", "abc", ""},
		{"principala", "bc", ""}, {"principal", "a:b", ""}, {"principal", "a%3Ab", ""},
		{"principal", "a%253Ab", ""}, {"principal", "a\nb", ""}, {"principal", `a\nb`, ""},
		{"principal", "a\x00b", ""}, {"principal", "a", "\x00b"}, {"principal", "a\x00", "b"},
		{"principal", "1.2.3.4", ""}, {"client-ip", "1.2.3.4", ""}, {"api-key", "1.2.3.4", ""},
		{"principal", "é", ""}, {"principal", "e\u0301", ""}, {"principal", "\xff", ""}, {"principal", "\ufffd", ""},
		{"principal", "Alice", ""}, {"principal", "alice", ""}, {"principal", "alice ", ""},
		{"principal", "\x00\x00\x00\x00\x00\x00\x00\x01", ""},
	}
	p := pseudonymizer(t, subject.EphemeralKeyRing())
	seen := map[stint.Pseudonym]tuple{}
	for _, s := range tuples {
		got := of(t, p, s)
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q share a pseudonym", s, other)
		}
		seen[got] = s
	}
}

// Case C51 of the field.
func TestLongIdentitiesStayApart(t *testing.T) {
	p := pseudonymizer(t, subject.EphemeralKeyRing())
	long := strings.Repeat("x", 1<<20-1)
	keys := strings.Repeat("🔑", 127)
	for _, pair := range [][2]string{{long + "a", long + "b"}, {keys + "🔑", keys + "🔒"}} {
		if of(t, p, tuple{"api-key", pair[0], ""}) == of(t, p, tuple{"api-key", pair[1], ""}) {
			t.Errorf("two identities of %d bytes share a pseudonym", len(pair[0]))
		}
	}
}

func TestEmptyIdentityIsAnError(t *testing.T) {
	blank, err := subject.NewPseudonymizer(subject.EphemeralKeyRing(),
		map[subject.Kind]subject.Normaliser{subject.APIKey: subject.TrimSpace})
	if err != nil {
		t.Fatal(err)
	}
	for kind, identity := range map[subject.Kind]string{subject.Principal: "", subject.APIKey: " \t"} {
		if _, err := blank.Pseudonym(kind, identity, "op"); !errors.Is(err, subject.ErrEmptyIdentity) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

func TestNormalisersAreForTheirKindOnly(t *testing.T) {
	p, err := subject.NewPseudonymizer(subject.EphemeralKeyRing(), map[subject.Kind]subject.Normaliser{
		subject.Principal: subject.Chain(subject.TrimSpace, subject.LowerASCII),
	})
	if err != nil {
		t.Fatal(err)
	}
	if of(t, p, tuple{"principal", " Alice ", ""}) != of(t, p, tuple{"principal", "alice", ""}) {
		t.Error("the normaliser was not applied")
	}
	if of(t, p, tuple{"api-key", "K", ""}) == of(t, p, tuple{"api-key", "k", ""}) {
		t.Error("a kind without a normaliser was normalised")
	}
	if _, err := p.Pseudonym(subject.Principal, "İpek", ""); !errors.Is(err, subject.ErrNotASCII) {
		t.Errorf("outside ASCII: got %v", err)
	}
}

func TestPseudonymizerNeedsItsParts(t *testing.T) {
	if p, err := subject.NewPseudonymizer(nil, nil); p != nil || err == nil {
		t.Errorf("without a ring: %v, %v", p, err)
	}
	nothing := map[subject.Kind]subject.Normaliser{subject.APIKey: nil}
	if p, err := subject.NewPseudonymizer(subject.EphemeralKeyRing(), nothing); p != nil || err == nil {
		t.Errorf("with a nil normaliser: %v, %v", p, err)
	}
}

func TestConcurrentCallersDoNotMix(t *testing.T) {
	p := pseudonymizer(t, subject.EphemeralKeyRing())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				s := tuple{"principal", strings.Repeat("p", 1+i%7*300), ""}
				if first, again := of(t, p, s), of(t, p, s); first != again {
					t.Error("one subject has two pseudonyms")
				}
			}
		})
	}
	wg.Wait()
}

// randomTuple draws from few letters, among them separators, so that tuples
// whose concatenations are equal come up often.
func randomTuple(r *rand.Rand) tuple {
	const letters = "a:|%3\x00\n"
	part := func(least int) string {
		b := make([]byte, least+r.IntN(4))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	return tuple{part(1), part(1), part(0)}
}

func TestRandomTuplesStayApart(t *testing.T) {
	p := pseudonymizer(t, subject.EphemeralKeyRing())
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[stint.Pseudonym]tuple{}
	for range 100_000 {
		s := randomTuple(r)
		got := of(t, p, s)
		if other, taken := seen[got]; taken && other != s {
			t.Fatalf("%q and %q share a pseudonym", s, other)
		}
		seen[got] = s
	}
}

// FuzzPairs looks for two tuples with one pseudonym, or one with two.
func FuzzPairs(f *testing.F) {
	f.Add("did:key:abc", "s", "did:key", "abc:s")
	f.Add("a", "b|c", "a|b", "c")
	f.Add("ab", "c", "a", "bc")
	p := pseudonymizer(f, subject.EphemeralKeyRing())
	f.Fuzz(func(t *testing.T, identity, operation, identity2, operation2 string) {
		if identity == "" || identity2 == "" {
			return
		}
		a, b := tuple{"principal", identity, operation}, tuple{"principal", identity2, operation2}
		if (of(t, p, a) == of(t, p, b)) != (a == b) {
			t.Errorf("%q and %q", a, b)
		}
	})
}

func BenchmarkPseudonym(b *testing.B) {
	p := pseudonymizer(b, subject.EphemeralKeyRing())
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.Pseudonym(subject.ClientIP, "2001:db8::/64", "")
	}
}

// BenchmarkRandomPairs checks a pair in each round: run it a million times for
// the closing note, with -benchtime 1000000x.
func BenchmarkRandomPairs(b *testing.B) {
	p := pseudonymizer(b, subject.EphemeralKeyRing())
	r := rand.New(rand.NewPCG(3, 4))
	for b.Loop() {
		s, other := randomTuple(r), randomTuple(r)
		if (of(b, p, s) == of(b, p, other)) != (s == other) {
			b.Fatalf("%q and %q", s, other)
		}
	}
}
