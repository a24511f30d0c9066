package clientip_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stintlimit/stint/internal/clientip"
)

// FuzzForwarding feeds a trusted peer's header, its lines separated by line
// feeds, to each syntax.
func FuzzForwarding(f *testing.F) {
	for _, seed := range []string{
		"1.1.1.1\n198.51.100.9", "10.0.0.1, 10.0.0.2", "203.0.113.7:51234", "[2001:db8::1]:443", "::ffff:10.0.0.1",
		"fe80::1%eth0", ",,", "", "unknown", `for="[2001:db8:cafe::17]:4711";proto=http, for=10.0.0.1`,
		`for="a\", for=192.0.2.1`, `for=1.1.1.1;for=2.2.2.2`, "\"", `\"`, "[", "[]:", "10.0.0.1\n\n",
	} {
		f.Add(seed)
	}
	var resolvers []*clientip.Resolver
	headers := []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"}
	for _, h := range headers {
		resolvers = append(resolvers, resolver(f, clientip.Config{Trusted: trusted, Header: h}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		values := strings.Split(text, "\n")
		for i, r := range resolvers {
			h := http.Header{headers[i]: values}
			got, err := r.Client("10.0.0.2:1", h)
			if again, err2 := r.Client("10.0.0.2:1", h); again != got || !errors.Is(err, err2) {
				t.Fatalf("%s: %v, %v and then %v, %v", headers[i], got, err, again, err2)
			}
			if err != nil {
				if fault := clientip.Fault(""); !errors.As(err, &fault) || got.IsValid() {
					t.Fatalf("%s: %v, %v", headers[i], got, err)
				}
				continue
			}
			if got.Is4In6() || got.Zone() != "" || !got.IsValid() {
				t.Fatalf("%s: %v is not canonical", headers[i], got)
			}
			if isTrusted(got) && !allTrusted(r, headers[i], values) {
				t.Fatalf("%s: %v is a trusted proxy, and not every hop is", headers[i], got)
			}
			// What an attacker puts to the left never matters once an
			// untrusted hop has been found.
			if !isTrusted(got) && headers[i] != "X-Real-Ip" {
				forged := append([]string{`9.9.9.9, x"\`}, values...)
				if other, err := r.Client("10.0.0.2:1", http.Header{headers[i]: forged}); err != nil || other != got {
					t.Fatalf("%s: %v became %v, %v behind a forged line", headers[i], got, other, err)
				}
			}
		}
	})
}

func isTrusted(a netip.Addr) bool {
	for _, p := range trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// allTrusted asks again with an untrusted hop to the left: if it is reached,
// all hops to its right are trusted.
func allTrusted(r *clientip.Resolver, header string, values []string) bool {
	if header == "X-Real-Ip" {
		return len(values) == 1
	}
	sentinel := map[string]string{"X-Forwarded-For": "192.0.2.99", "Forwarded": "for=192.0.2.99"}[header]
	got, err := r.Client("10.0.0.2:1", http.Header{header: append([]string{sentinel}, values...)})
	return errors.Is(err, clientip.TooLong) || err == nil && got == netip.MustParseAddr("192.0.2.99")
}

func BenchmarkClient(b *testing.B) {
	for name, h := range map[string]http.Header{
		"x-forwarded-for":       {"X-Forwarded-For": {"1.1.1.1, 198.51.100.9, 10.0.0.3"}},
		"10,000-forged-entries": {"X-Forwarded-For": {strings.Repeat("1.1.1.1, ", 10_000) + "198.51.100.9"}},
		"10,000-trusted-hops":   {"X-Forwarded-For": {strings.Repeat("10.0.0.1, ", 10_000) + "10.0.0.1"}},
	} {
		b.Run(name, func(b *testing.B) {
			r := resolver(b, clientip.Config{Trusted: trusted, Header: "X-Forwarded-For"})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.Client("10.0.0.2:1234", h)
			}
		})
	}
}
