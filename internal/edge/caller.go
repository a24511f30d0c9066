package edge

import (
	"errors"
	"net/http"
	"net/netip"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/subject"
)

// caller is who made one request, found out as far as charges ask.
type caller struct {
	bridge  *Bridge
	request *http.Request

	resolved bool
	addr     netip.Addr
	addrErr  error
}

// absent reports whether err says that an identity is not there at all, as
// opposed to one that is there and cannot be used.
func absent(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, clientip.NoAddress) || errors.Is(err, subject.ErrEmptyIdentity)
}

func (c *caller) pseudonym(ch *charge) (stint.Pseudonym, error) {
	var identity string
	var err error
	switch ch.subject {
	case subject.ClientIP:
		var a netip.Addr
		if a, err = c.address(); err == nil {
			identity = clientip.Group(a, ch.ipv6Prefix)
		}
	case subject.APIKey:
		identity, err = only(c.request.Header[c.bridge.apiKeyHeader])
	case subject.Principal:
		identity, err = c.principal()
	default:
		return ch.everyone, nil
	}
	if err != nil {
		return stint.Pseudonym{}, err
	}
	return c.bridge.pseudonymizer.Pseudonym(ch.subject, identity, ch.operation)
}

// address resolves the client's address once a request.
func (c *caller) address() (netip.Addr, error) {
	if !c.resolved {
		c.addr, c.addrErr = c.bridge.resolver.Client(c.request.RemoteAddr, c.request.Header)
		c.resolved = true
	}
	return c.addr, c.addrErr
}

func (c *caller) principal() (string, error) {
	if f := c.bridge.principal; f != nil {
		return only([]string{f(c.request)})
	}
	if !c.bridge.resolver.TrustsPeer(c.request.RemoteAddr) {
		return "", ErrMissing
	}
	return only(c.request.Header[c.bridge.principalField])
}

// only returns the one value of a header. With several, whoever reads the
// header after us might take another one.
func only(values []string) (string, error) {
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", ErrMissing
	case len(values) > 1:
		return "", ErrAmbiguous
	}
	return values[0], nil
}
