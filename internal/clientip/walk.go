package clientip

import (
	"net/netip"
	"slices"
	"strings"
)

// What is looked at before giving up. Real chains have a handful of hops; an
// attacker's entries stand to the left of the first untrusted one and are not
// looked at.
const (
	maxHops  = 64
	maxBytes = 8 << 10
)

// syntax is how the value of a header is read.
type syntax uint8

const (
	list      syntax = iota // addresses, separated by commas
	forwarded               // RFC 7239
	single                  // one address
)

func syntaxOf(header string) syntax {
	switch {
	case header == "Forwarded":
		return forwarded
	case strings.HasSuffix(header, "-Forwarded-For"):
		return list
	}
	return single
}

// walk reads the hops from the right and returns the first that is not
// trusted, or the leftmost.
func (r *Resolver) walk(lines []string) (netip.Addr, error) {
	if r.syntax == single && len(lines) > 1 {
		return netip.Addr{}, Malformed
	}
	var hop netip.Addr
	hops, budget := 0, maxBytes
	for _, line := range slices.Backward(lines) {
		rest, more := line, true
		for more {
			if hops == maxHops {
				return netip.Addr{}, TooLong
			}
			hops++
			var entry string
			var fault error
			rest, entry, more, fault = r.lastEntry(rest, budget)
			if fault != nil {
				return netip.Addr{}, fault
			}
			budget -= len(entry)
			var ok bool
			if hop, ok = r.parse(entry); !ok {
				return netip.Addr{}, Malformed
			}
			if !r.trusted.Contains(hop) {
				return hop, nil
			}
		}
	}
	return hop, nil
}

// lastEntry splits a line before its last entry, looking at no more than
// budget bytes. More reports whether a comma stood before the entry.
func (r *Resolver) lastEntry(line string, budget int) (rest, entry string, more bool, fault error) {
	tail := line[max(0, len(line)-budget):]
	comma, ok := -1, true
	switch r.syntax {
	case list:
		comma = strings.LastIndexByte(tail, ',')
	case forwarded:
		comma, ok = lastUnquotedComma(tail)
	}
	cut := len(tail) < len(line)
	switch {
	case comma < 0 && cut:
		return "", "", false, TooLong
	case !ok:
		return "", "", false, Malformed
	case comma < 0:
		return "", line, false, nil
	}
	comma += len(line) - len(tail)
	return line[:comma], line[comma+1:], true, nil
}

func (r *Resolver) parse(entry string) (netip.Addr, bool) {
	if r.syntax == forwarded {
		return parseElement(entry)
	}
	return parseNode(entry)
}
