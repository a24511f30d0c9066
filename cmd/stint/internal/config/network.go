package config

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// address reads host:port. A listener may leave the host out, for all
// interfaces, and may ask for port 0, for a free one.
func address(into *string, listener bool) shape {
	bounds := "host:port, port 1 to 65535"
	if listener {
		bounds = "host:port or :port, port 0 to 65535"
	}
	return text("address", bounds, into, func(s string) string {
		host, port, err := net.SplitHostPort(s)
		if mayHoldSecret(s) {
			return "is not " + bounds
		}
		if err != nil {
			return fmt.Sprintf("%q is not %s, as in 127.0.0.1:8080 or \"[::1]:8080\"", clip(s), bounds)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || n == 0 && !listener || len(port) > 5:
			return fmt.Sprintf("%q has no such port: %s", clip(s), bounds)
		case host == "" && !listener:
			return fmt.Sprintf("%q names no host: %s", clip(s), bounds)
		case host != "" && !isHost(host):
			return fmt.Sprintf("%q has no valid host: a name or an IP address", clip(s))
		}
		return ""
	})
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)
var allDigits = regexp.MustCompile(`^[0-9.]+$`)

func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return len(s) <= 253 && hostName.MatchString(s) && !allDigits.MatchString(s)
}

// httpURL reads where requests are sent on to. Messages never repeat the URL,
// which may hold a password.
func httpURL(into **url.URL) shape {
	const kind = "http:// or https://, a host, perhaps a port and a path"
	return shape{kind: "URL", bounds: kind, read: func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.text(n, path)
		if !ok {
			return
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
			d.problemNode(n, path, "is not such a URL: %s", kind)
		case u.User != nil:
			d.problemNode(n, path, "holds a user or a password: an upstream is reached without")
		case !isHost(u.Hostname()) || badPort(u):
			d.problemNode(n, path, "has no valid host and port: %s", kind)
		case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			d.problemNode(n, path, "has a query or a fragment: %s", kind)
		default:
			*into = u
		}
	}}
}

func badPort(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return strings.HasSuffix(u.Host, ":") || u.Port() != "" && (err != nil || n == 0)
}

// network reads a block of addresses.
func network(into *netip.Prefix) shape {
	return shape{kind: "network", bounds: "CIDR", read: func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.text(n, path)
		if !ok {
			return
		}
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			d.problemNode(n, path, "is an address: the network of it alone is %s/%d", a.Unmap(), a.Unmap().BitLen())
			return
		}
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			d.problemNode(n, path, "%q is not a network in CIDR notation, as in 10.0.0.0/8 or \"2001:db8::/32\"", clip(s))
		case p.Addr().Is4In6():
			d.problemNode(n, path, "%s is an IPv4 network in IPv6 notation: write it as IPv4", p)
		case p != p.Masked():
			d.problemNode(n, path, "%s has address bits beyond /%d: the network is %s", p, p.Bits(), p.Masked())
		default:
			*into = p
		}
	}}
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")

// header reads the name of a request header.
func header(into *string) shape {
	return shape{kind: "header name", bounds: "at most 64 characters", read: func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.text(n, path)
		switch {
		case !ok:
		case !headerName.MatchString(s):
			d.problemNode(n, path, "%q is not the name of a header, as in X-API-Key", clip(s))
		case strings.EqualFold(s, "Host"):
			d.problemNode(n, path, "the Host header says where a request goes, not who sends it")
		default:
			*into = http.CanonicalHeaderKey(s)
		}
	}}
}
