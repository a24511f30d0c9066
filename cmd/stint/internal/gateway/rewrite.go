package gateway

import (
	"net/http"
	"net/http/httputil"
	"strings"
)

// forwarding are the headers in which proxies tell whom they forward for.
var forwarding = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite makes the request to the upstream. httputil has removed hop-by-hop
// headers and the forwarding headers from it by now.
func rewrite(c *Config, pr *httputil.ProxyRequest) {
	pr.SetURL(c.Upstream)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came, whatever a parser thinks of it
	trusted := c.Trusted(pr.In.RemoteAddr)
	removeTwins(pr.Out.Header, append(forwarding[:], c.PrincipalHeader))
	if trusted {
		copyHeader(pr, "Forwarded")
		copyHeader(pr, "X-Forwarded-For") // to which the peer is added
	} else if c.PrincipalHeader != "" {
		pr.Out.Header.Del(c.PrincipalHeader)
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

// removeTwins removes headers that an upstream which reads '_' as '-', as CGI
// does, would take for one of names.
func removeTwins(h http.Header, names []string) {
	for name := range h {
		if !strings.Contains(name, "_") {
			continue
		}
		for _, n := range names {
			if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), n) {
				delete(h, name)
			}
		}
	}
}
