package clientip

import (
	"net/netip"
	"strings"
)

// lastUnquotedComma finds the last comma outside quoted strings, reading from
// the right, so that nothing that a client sent changes how the part appended
// by a proxy is read. ok is false if a quoted string does not begin.
func lastUnquotedComma(s string) (at int, ok bool) {
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ',':
			return i, true
		case '"':
			if i = openingQuote(s, i); i < 0 {
				return -1, false
			}
		}
	}
	return -1, true
}

// openingQuote returns the place of the quote that opens the string closed at
// end, or -1. A quote after an odd number of backslashes is part of the string.
func openingQuote(s string, end int) int {
	for i := end - 1; i >= 0; i-- {
		if s[i] != '"' {
			continue
		}
		slashes := 0
		for j := i - 1; j >= 0 && s[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return -1
}

// parseElement reads one forwarded-element of RFC 7239 §4 and returns the
// address of its only for parameter. The identifier "unknown" and obfuscated
// ones, RFC 7239 §6, are no addresses.
func parseElement(s string) (netip.Addr, bool) {
	var client netip.Addr
	found := false
	for more := true; more; {
		if s = strings.TrimLeft(s, " \t"); s == "" {
			break
		}
		if s[0] == ';' { // an empty pair, which the grammar allows
			s = s[1:]
			continue
		}
		var name, value string
		var ok bool
		name, value, s, more, ok = nextPair(s)
		if !ok {
			return netip.Addr{}, false
		}
		if !strings.EqualFold(name, "for") {
			continue
		}
		if found {
			return netip.Addr{}, false
		}
		if client, found = parseForwardedNode(value); !found {
			return netip.Addr{}, false
		}
	}
	return client, found
}

// nextPair reads token "=" ( token / quoted-string ), and the ";" after it.
func nextPair(s string) (name, value, rest string, more, ok bool) {
	name, s, ok = strings.Cut(s, "=")
	if !ok || !ValidHeader(name) {
		return "", "", "", false, false
	}
	if value, rest, ok = cutQuoted(s); !ok {
		value, rest = s, ""
		if i := strings.IndexByte(s, ';'); i >= 0 {
			value, rest = s[:i], s[i:]
		}
		value = strings.TrimRight(value, " \t")
		if !validToken(value) {
			return "", "", "", false, false
		}
	}
	rest = strings.TrimLeft(rest, " \t")
	switch {
	case rest == "":
		return name, value, "", false, true
	case rest[0] == ';':
		return name, value, rest[1:], true, true
	}
	return "", "", "", false, false
}

// cutQuoted splits a quoted string from what follows it. An address needs no
// escapes, so they are left in the value, where they make it no address.
func cutQuoted(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return "", s, false
}

// parseForwardedNode reads a node, RFC 7239 §6: IPv6 stands in brackets.
func parseForwardedNode(s string) (netip.Addr, bool) {
	if strings.Trim(s, " \t") != s {
		return netip.Addr{}, false
	}
	a, ok := parseNode(s)
	if ok && a.Is6() && !strings.HasPrefix(s, "[") {
		return netip.Addr{}, false
	}
	return a, ok
}

// validToken also takes the characters of an address, which many proxies leave
// unquoted although they are not token characters.
func validToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isTokenByte(c) && !strings.ContainsRune("[]:/", rune(c)) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
