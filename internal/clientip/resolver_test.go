package clientip_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stintlimit/stint/internal/clientip"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func resolver(t testing.TB, c clientip.Config) *clientip.Resolver {
	t.Helper()
	r, problems := clientip.New(c)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return r
}

var trusted = prefixes("10.0.0.0/8", "fd00::/8", "2001:db8:ffff::/48")

func lines(name string, values ...string) http.Header { return http.Header{name: values} }

// check compares an answer with an address, or with a fault if want is one.
func check(t *testing.T, r *clientip.Resolver, peer string, h http.Header, want any) {
	t.Helper()
	got, err := r.Client(peer, h)
	switch want := want.(type) {
	case string:
		if err != nil || got != netip.MustParseAddr(want) {
			t.Errorf("got %v, %v; want %s", got, err, want)
		}
	case clientip.Fault:
		if !errors.Is(err, want) || got.IsValid() {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
}

func TestPeerIsTheClientUnlessTrusted(t *testing.T) {
	r := resolver(t, clientip.Config{Trusted: trusted, Header: "x-forwarded-for"})
	header := lines("X-Forwarded-For", "198.51.100.9")
	for name, tt := range map[string]struct {
		peer string
		want any
	}{
		"an untrusted peer's header is ignored":       {"192.0.2.1:1234", "192.0.2.1"},
		"a trusted peer's is read":                    {"10.0.0.2:1234", "198.51.100.9"},
		"a peer in IPv4-mapped form is the same peer": {"[::ffff:10.0.0.2]:1234", "198.51.100.9"},
		"an IPv6 peer":                 {"[2001:db8::1]:80", "2001:db8::1"},
		"a zone names no other client": {"[fe80::1%eth0]:80", "fe80::1"},
		"a trusted peer with a zone":   {"[fd00::1%eth0]:80", "198.51.100.9"},
		"a bare address":               {"192.0.2.1", "192.0.2.1"},
		"no address":                   {"", clientip.NoAddress},
		"a Unix socket":                {"@", clientip.NoAddress},
		"a named Unix socket":          {"/run/stint.sock", clientip.NoAddress},
		"a host name":                  {"localhost:80", clientip.NoAddress},
	} {
		t.Run(name, func(t *testing.T) { check(t, r, tt.peer, header, tt.want) })
	}
}

// Case C43 of the field.
func TestPortIsNoPartOfTheClient(t *testing.T) {
	list := resolver(t, clientip.Config{Trusted: trusted, Header: "X-Forwarded-For"})
	for entry, want := range map[string]any{
		"203.0.113.7:51234":     "203.0.113.7",
		"203.0.113.7:51999":     "203.0.113.7",
		"203.0.113.7":           "203.0.113.7",
		" \t203.0.113.7 ":       "203.0.113.7",
		"::ffff:203.0.113.7":    "203.0.113.7",
		"[::ffff:203.0.113.7]":  "203.0.113.7",
		"[2001:db8::1]:443":     "2001:db8::1",
		"[2001:db8::1]":         "2001:db8::1",
		"2001:db8::1":           "2001:db8::1",
		"2001:0DB8:0::0001":     "2001:db8::1",
		"2001:db8::1%eth0":      "2001:db8::1",
		"203.0.113.7:":          clientip.Malformed,
		":51234":                clientip.Malformed,
		"1.2.3.4.5":             clientip.Malformed,
		"unknown":               clientip.Malformed,
		"_hidden":               clientip.Malformed,
		"":                      clientip.Malformed,
		" ":                     clientip.Malformed,
		"010.0.0.1":             clientip.Malformed,
		"127.1":                 clientip.Malformed,
		"0x7f000001":            clientip.Malformed,
		"203.0.113.7:99999":     clientip.Malformed,
		"203.0.113.7:+80":       clientip.Malformed,
		"[203.0.113.7]":         clientip.Malformed,
		"[203.0.113.7]:80":      clientip.Malformed,
		"[2001:db8::1":          clientip.Malformed,
		"2001:db8::1]":          clientip.Malformed,
		"[2001:db8::1]x":        clientip.Malformed,
		`"203.0.113.7"`:         clientip.Malformed,
		"203.0.113.7 10.0.0.1":  clientip.Malformed,
		"203.0.113.7\x00":       clientip.Malformed,
		"203.0.113.0/24":        clientip.Malformed,
		"http://203.0.113.7/":   clientip.Malformed,
		"２０３.0.113.7":           clientip.Malformed,
		"203.0.113.7;10.0.0.1":  clientip.Malformed,
		"for=203.0.113.7":       clientip.Malformed,
		"203.0.113.7,":          clientip.Malformed,
		"203.0.113.7,,10.0.0.9": clientip.Malformed,
		"unknown, 10.0.0.9":     clientip.Malformed,
		"unknown, 203.0.113.7":  "203.0.113.7", // what a client sent is not looked at
	} {
		t.Run(entry, func(t *testing.T) {
			check(t, list, "10.0.0.2:1234", lines("X-Forwarded-For", entry), want)
		})
	}
}

func TestForwardedIsReadAsRFC7239Says(t *testing.T) {
	r := resolver(t, clientip.Config{Trusted: trusted, Header: "Forwarded"})
	for value, want := range map[string]any{
		`for=203.0.113.7`:                               "203.0.113.7",
		`For="203.0.113.7:4711"`:                        "203.0.113.7",
		`for=203.0.113.7:4711`:                          "203.0.113.7", // unquoted, as many proxies write it
		`for="[2001:db8:cafe::17]:4711"`:                "2001:db8:cafe::17",
		`for="[2001:db8:cafe::17]"`:                     "2001:db8:cafe::17",
		`for="[::ffff:203.0.113.7]"`:                    "203.0.113.7",
		`proto=http;by=203.0.113.43;for=192.0.2.60`:     "192.0.2.60",
		`for=192.0.2.60; proto=http ;by=203.0.113.43`:   "192.0.2.60",
		`;for=192.0.2.60;;proto=http;`:                  "192.0.2.60",
		`for=1.1.1.1, for=192.0.2.60, for=10.0.0.9`:     "192.0.2.60",
		`for=1.1.1.1,for=192.0.2.60;host="a,b;c=\"d\""`: "192.0.2.60",
		`for="1.1.1.1, for=192.0.2.60`:                  "192.0.2.60", // an unbalanced quote of the client
		`host="\", for="[2001:db8::9]"`:                 "2001:db8::9",
		`for=10.0.0.8, for=10.0.0.9`:                    "10.0.0.8",
		`for="2001:db8:cafe::17"`:                       clientip.Malformed,
		`for=unknown`:                                   clientip.Malformed,
		`for=_mystery`:                                  clientip.Malformed,
		`for="_SEVKISEK"`:                               clientip.Malformed,
		`for=192.0.2.60, for=unknown, for=10.0.0.9`:     clientip.Malformed,
		`proto=https;by=203.0.113.43`:                   clientip.Malformed,
		`for=192.0.2.60;for=192.0.2.61`:                 clientip.Malformed,
		`for=`:                                          clientip.Malformed,
		`for=""`:                                        clientip.Malformed,
		`for=" 192.0.2.60"`:                             clientip.Malformed,
		`for = 192.0.2.60`:                              clientip.Malformed,
		`for="192.0.2.\60"`:                             clientip.Malformed,
		`for="192.0.2.60" x`:                            clientip.Malformed,
		`for="192.0.2.60`:                               clientip.Malformed,
		`for=192.0.2.60"`:                               clientip.Malformed,
		`192.0.2.60`:                                    clientip.Malformed,
		`for=192.0.2.60,`:                               clientip.Malformed,
		`,for=192.0.2.60, `:                             clientip.Malformed,
		``:                                              clientip.Malformed,
	} {
		t.Run(value, func(t *testing.T) { check(t, r, "10.0.0.2:1", lines("Forwarded", value), want) })
	}
}

func TestSingleAddressHeaderHoldsOneAddress(t *testing.T) {
	r := resolver(t, clientip.Config{Trusted: trusted, Header: "CF-Connecting-IP"})
	for name, tt := range map[string]struct {
		values []string
		want   any
	}{
		"one":              {[]string{"198.51.100.9"}, "198.51.100.9"},
		"one with a port":  {[]string{"[2001:db8::1]:443"}, "2001:db8::1"},
		"a trusted one":    {[]string{"10.9.9.9"}, "10.9.9.9"},
		"a list":           {[]string{"1.1.1.1, 198.51.100.9"}, clientip.Malformed},
		"two lines":        {[]string{"1.1.1.1", "198.51.100.9"}, clientip.Malformed},
		"an empty line":    {[]string{""}, clientip.Malformed},
		"none: its sender": {nil, "10.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, r, "10.0.0.2:1", lines("Cf-Connecting-Ip", tt.values...), tt.want)
		})
	}
}

// C46: Several lines are one list; the first line is what an attacker sent.
func TestSeveralLinesAreOneList(t *testing.T) {
	r := resolver(t, clientip.Config{Trusted: trusted, Header: "X-Forwarded-For"})
	for i := range 20 {
		forged := fmt.Sprintf("1.1.1.%d", i)
		check(t, r, "10.0.0.2:1", lines("X-Forwarded-For", forged, "198.51.100.9"), "198.51.100.9")
		check(t, r, "10.0.0.2:1", lines("X-Forwarded-For", forged, "198.51.100.9, 10.0.0.3"), "198.51.100.9")
		check(t, r, "10.0.0.2:1", lines("X-Forwarded-For", forged, "198.51.100.9", "10.0.0.3"), "198.51.100.9")
		check(t, r, "192.0.2.1:1", lines("X-Forwarded-For", forged, "198.51.100.9"), "192.0.2.1")
	}
	check(t, r, "10.0.0.2:1", lines("X-Forwarded-For", "10.0.0.7, 10.0.0.6", "10.0.0.5"), "10.0.0.7")
	check(t, r, "10.0.0.2:1", lines("X-Forwarded-For", "198.51.100.9", ""), clientip.Malformed)
}

func TestOtherHeadersAreNotLookedAt(t *testing.T) {
	r := resolver(t, clientip.Config{Trusted: trusted, Header: "X-Forwarded-For"})
	h := http.Header{
		"X-Forwarded-For":  {"198.51.100.9"},
		"X_forwarded_for":  {"1.1.1.1"},
		"X-Real-Ip":        {"1.1.1.2"},
		"True-Client-Ip":   {"1.1.1.3"},
		"Cf-Connecting-Ip": {"1.1.1.4"},
		"Forwarded":        {"for=1.1.1.5"},
		"Connection":       {"X-Forwarded-For"},
	}
	check(t, r, "10.0.0.2:1", h, "198.51.100.9")
	h.Del("X-Forwarded-For")
	check(t, r, "10.0.0.2:1", h, "10.0.0.2")
}

// Case C45 of the field.
func TestUnixSocketIsBelievedOnlyWhenAsked(t *testing.T) {
	header := lines("X-Forwarded-For", "198.51.100.9")
	distrusting := resolver(t, clientip.Config{Trusted: trusted, Header: "X-Forwarded-For"})
	trusting := resolver(t, clientip.Config{TrustUnix: true, Header: "X-Forwarded-For"})
	for _, peer := range []string{"", "@"} {
		check(t, distrusting, peer, header, clientip.NoAddress)
		check(t, trusting, peer, header, "198.51.100.9")
		check(t, trusting, peer, nil, clientip.NoAddress)
		if distrusting.TrustsPeer(peer) || !trusting.TrustsPeer(peer) {
			t.Errorf("%q: trust is not what was configured", peer)
		}
	}
	check(t, trusting, "10.0.0.2:1", header, "10.0.0.2")
}

// Case C46 of the field.
func TestWorkIsBounded(t *testing.T) {
	list := resolver(t, clientip.Config{Trusted: trusted, Header: "X-Forwarded-For"})
	forwarded := resolver(t, clientip.Config{Trusted: trusted, Header: "Forwarded"})
	many := func(entry string) string { return strings.TrimSuffix(strings.Repeat(entry+", ", 10_000), ", ") }
	for name, tt := range map[string]struct {
		r      *clientip.Resolver
		header http.Header
		want   any
	}{
		"10,000 forged entries, then the proxy's":  {list, lines("X-Forwarded-For", many("1.1.1.1"), "198.51.100.9"), "198.51.100.9"},
		"10,000 entries of nonsense":               {list, lines("X-Forwarded-For", many("x")+", 198.51.100.9"), "198.51.100.9"},
		"10,000 trusted hops":                      {list, lines("X-Forwarded-For", many("10.0.0.1")), clientip.TooLong},
		"10,000 lines of trusted hops":             {list, lines("X-Forwarded-For", strings.Split(many("10.0.0.1"), ", ")...), clientip.TooLong},
		"64 trusted hops":                          {list, lines("X-Forwarded-For", "10.0.0.7"+strings.Repeat(",10.0.0.1", 63)), "10.0.0.7"},
		"65 trusted hops":                          {list, lines("X-Forwarded-For", "10.0.0.7"+strings.Repeat(",10.0.0.1", 64)), clientip.TooLong},
		"one entry of a megabyte":                  {list, lines("X-Forwarded-For", strings.Repeat("1", 1<<20)), clientip.TooLong},
		"spaces of a megabyte before a good entry": {list, lines("X-Forwarded-For", strings.Repeat(" ", 1<<20)+"198.51.100.9"), clientip.TooLong},
		"Forwarded, 10,000 trusted hops":           {forwarded, lines("Forwarded", many("for=10.0.0.1")), clientip.TooLong},
		"Forwarded, a string that never begins":    {forwarded, lines("Forwarded", strings.Repeat(`\`, 1<<20)+`"`), clientip.TooLong},
		"Forwarded, 10,000 forged, then one":       {forwarded, lines("Forwarded", many(`for="_x\"`)+", for=198.51.100.9"), "198.51.100.9"},
	} {
		t.Run(name, func(t *testing.T) { check(t, tt.r, "10.0.0.2:1", tt.header, tt.want) })
	}
}

// Case C44 of the field.
func TestGroupsOfIPv6Clients(t *testing.T) {
	for _, tt := range []struct {
		addr string
		bits int
		want string
	}{
		{"203.0.113.7", 64, "203.0.113.7/32"},
		{"203.0.113.8", 8, "203.0.113.8/32"},
		{"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2:ffff::", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:3::1", 64, "2001:db8:1:3::/64"},
		{"2001:db8:1:3::1", 56, "2001:db8:1::/56"},
		{"2001:db8:1:2::1", 56, "2001:db8:1::/56"},
		{"2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6/128"},
		{"2001:db8:1:2:3:4:5:6", 1, "::/1"},
	} {
		if got := clientip.Group(netip.MustParseAddr(tt.addr), tt.bits); got != tt.want {
			t.Errorf("%s by %d bits: got %s, want %s", tt.addr, tt.bits, got, tt.want)
		}
	}
}

func TestConfigurationProblemsAreAllNamed(t *testing.T) {
	_, problems := clientip.New(clientip.Config{
		Trusted: []netip.Prefix{{}, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::ffff:0:0/90")},
		Header:  "X Forwarded",
	})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	if got, want := strings.Join(fields, " "), "Trusted[0] Trusted[1] Trusted[2] Header"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, problems := clientip.New(clientip.Config{Header: "Forwarded"}); len(problems) != 1 {
		t.Errorf("a header that nobody is believed for: got %v", problems)
	}
	r := resolver(t, clientip.Config{Trusted: prefixes("::ffff:10.1.2.3/104"), Header: "Forwarded"})
	if !r.TrustsPeer("10.200.0.1:80") || r.TrustsPeer("11.0.0.1:80") {
		t.Error("a mapped network is not its IPv4 network")
	}
}
