package clientip

import (
	"net/netip"
	"strings"
)

// peerAddr reads http.Request.RemoteAddr: "address:port", or a bare address as
// some servers put it there. Over a Unix socket it is empty or "@".
func peerAddr(remoteAddr string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(remoteAddr); err == nil {
		return canonical(ap.Addr()), true
	}
	if a, err := netip.ParseAddr(remoteAddr); err == nil {
		return canonical(a), true
	}
	return netip.Addr{}, false
}

// parseNode reads an address as proxies write it: bare, in brackets, with or
// without a port. An IPv6 address with a port is always in brackets.
func parseNode(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	inner, bracketed := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	switch {
	case bracketed && closed:
		a, err := netip.ParseAddr(inner)
		return canonical(a), err == nil && a.Is6()
	case bracketed || strings.Count(s, ":") == 1:
		ap, err := netip.ParseAddrPort(s)
		return canonical(ap.Addr()), err == nil
	}
	a, err := netip.ParseAddr(s)
	return canonical(a), err == nil
}

// canonical makes one address of the forms that one client may appear under.
func canonical(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
