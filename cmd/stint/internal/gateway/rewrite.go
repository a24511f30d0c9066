package gateway

import (
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
)

// Headers in which proxies tell whom they forward for: those that begin with
// the prefix, and others.
const forwardedPrefix = "X-Forwarded-"

var forwarding = [...]string{"Forwarded", "X-Real-Ip"}

// rewrite makes the request to the upstream. httputil has removed hop-by-hop
// headers and the forwarding headers that it knows from it by now.
func rewrite(c *Config, pr *httputil.ProxyRequest) {
	pr.SetURL(c.Upstream)
	pr.Out.URL.Opaque = ""                   // would be sent in place of the path that was charged
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came, whatever a parser thinks of it
	restrictUpgrade(pr.Out.Header)
	trusted := c.Trusted(pr.In.RemoteAddr)
	names := append(forwarding[:], c.ClientIPHeader, c.PrincipalHeader)
	removeTwins(pr.Out.Header, append(names, c.APIKeyHeader))
	if trusted {
		copyHeader(pr, "Forwarded")
		copyHeader(pr, "X-Forwarded-For") // to which the peer is added
	} else {
		removeForwarding(pr.Out.Header, names)
	}
	pr.SetXForwarded()
	if trusted {
		copyHeader(pr, "X-Forwarded-Host")
		copyHeader(pr, "X-Forwarded-Proto")
	}
}

func copyHeader(pr *httputil.ProxyRequest, name string) {
	if v := pr.In.Header[name]; len(v) > 0 {
		pr.Out.Header[name] = v
	}
}

// restrictUpgrade lets a connection become a WebSocket and nothing else. Over
// HTTP/2, which h2c upgrades to, requests would pass that nobody charges.
func restrictUpgrade(h http.Header) {
	h.Del("Http2-Settings")
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") {
		h.Del("Upgrade")
		h.Del("Connection")
	}
}

// removeForwarding removes what upstreams believe of a proxy only.
func removeForwarding(h http.Header, names []string) {
	for _, name := range names {
		h.Del(name)
	}
	for name := range h {
		if strings.HasPrefix(name, forwardedPrefix) {
			delete(h, name)
		}
	}
}

// removeTwins removes headers that an upstream which reads '_' as '-', as CGI
// does, would take for one of names or for a forwarding header.
func removeTwins(h http.Header, names []string) {
	for name := range h {
		if !strings.Contains(name, "_") {
			continue
		}
		read := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(read, forwardedPrefix) ||
			slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(read, n) }) {
			delete(h, name)
		}
	}
}
