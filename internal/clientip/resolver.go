package clientip

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"

	"github.com/gaissmai/bart"
)

// Config says whom to believe. The zero Config believes nobody: the peer is
// always the client.
type Config struct {
	// Trusted are the networks of the proxies whose header is believed.
	Trusted []netip.Prefix

	// TrustUnix believes peers without a network address, which is how a
	// proxy on the same machine connects over a Unix socket.
	TrustUnix bool

	// Header is the one header that is read from trusted peers. Forwarded is
	// read as RFC 7239 says; X-Forwarded-For, and names that end in
	// -Forwarded-For, as a list; any other as a single address. Empty: none,
	// and then a trusted peer is itself the client.
	Header string
}

// Problem is one thing wrong with a [Config].
type Problem struct {
	Field   string // a path in Config, such as "Trusted[1]"
	Message string
}

// Resolver finds client addresses. It is immutable and safe for concurrent
// use.
type Resolver struct {
	trusted   bart.Lite
	trustUnix bool
	header    string // canonical, "" for none
	syntax    syntax
}

// New returns a resolver, or every problem of c.
func New(c Config) (*Resolver, []Problem) {
	var problems []Problem
	r := &Resolver{trustUnix: c.TrustUnix}
	for i, p := range c.Trusted {
		canonical, err := CanonicalPrefix(p)
		if err != nil {
			problems = append(problems, Problem{fmt.Sprintf("Trusted[%d]", i), err.Error()})
			continue
		}
		if canonical.Bits() == 0 {
			problems = append(problems, Problem{fmt.Sprintf("Trusted[%d]", i),
				fmt.Sprintf("%v trusts everybody: any client could choose its address", p)})
			continue
		}
		r.trusted.Insert(canonical)
	}
	if c.Header != "" {
		if !ValidHeader(c.Header) {
			problems = append(problems, Problem{"Header", fmt.Sprintf("%q is not a header name", c.Header)})
		}
		r.header = textproto.CanonicalMIMEHeaderKey(c.Header)
		r.syntax = syntaxOf(r.header)
		if len(c.Trusted) == 0 && !c.TrustUnix {
			problems = append(problems, Problem{"Header", "is never read: no peer is trusted"})
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return r, nil
}

// CanonicalPrefix returns p with its host bits cleared, and a network of
// IPv4-mapped addresses as the IPv4 network that it means.
func CanonicalPrefix(p netip.Prefix) (netip.Prefix, error) {
	if !p.IsValid() {
		return netip.Prefix{}, errors.New("is not a network")
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%v mixes IPv4-mapped and other addresses: write the IPv4 network", p)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Client returns the address of the client of a request: unmapped, without
// zone and port. The error is a [Fault].
func (r *Resolver) Client(remoteAddr string, h http.Header) (netip.Addr, error) {
	peer, known := peerAddr(remoteAddr)
	if !r.trusts(peer, known) || r.header == "" {
		if !known {
			return netip.Addr{}, NoAddress
		}
		return peer, nil
	}
	lines := h[r.header]
	if len(lines) == 0 {
		if !known {
			return netip.Addr{}, NoAddress
		}
		return peer, nil
	}
	return r.walk(lines)
}

// TrustsPeer reports whether what the peer says about the client is believed.
func (r *Resolver) TrustsPeer(remoteAddr string) bool { return r.trusts(peerAddr(remoteAddr)) }

func (r *Resolver) trusts(peer netip.Addr, known bool) bool {
	if !known {
		return r.trustUnix
	}
	return r.trusted.Contains(peer)
}

// Group returns the identity that clients with a shared budget have: the
// address itself for IPv4, and its first bits for IPv6. The text is that of
// netip.Prefix and has no other spelling.
func Group(a netip.Addr, bits int) string {
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits)
	var memory [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")]byte
	return string(p.AppendTo(memory[:0]))
}

// ValidHeader reports whether name can name a header: a token, RFC 9110 §5.6.2.
func ValidHeader(name string) bool {
	for i := range len(name) {
		if !isTokenByte(name[i]) {
			return false
		}
	}
	return name != ""
}
