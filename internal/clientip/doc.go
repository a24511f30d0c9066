// Package clientip finds the network address of the client behind a chain of
// trusted proxies.
//
// The rule: the peer is the client unless it is a trusted proxy. Then the
// addresses of the one configured header, all its lines joined, are read from
// the right, and the first that is not a trusted proxy is the client. If every
// hop is trusted, the leftmost is. An entry that does not parse is no address:
// the client is unidentified, never somebody else.
//
// The package does not decide what a client without an address gets, and it
// makes no key of the address: that is for packages edge and subject.
package clientip

// Fault says why a client has no address. Faults are errors and never quote
// what was received.
type Fault string

// The faults.
const (
	// NoAddress: the peer has no network address, as over a Unix socket, and
	// no trusted header gave one.
	NoAddress Fault = "no client address"
	// Malformed: an entry of the configured header is not an address.
	Malformed Fault = "malformed forwarding header"
	// TooLong: the configured header has more trusted hops, or more bytes of
	// them, than are looked at.
	TooLong Fault = "forwarding header too long"
)

func (f Fault) Error() string { return "clientip: " + string(f) }
