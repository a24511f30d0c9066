package edge

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

// route is a Route made ready. As a Handler it does nothing: being one lets a
// ServeMux carry it.
type route struct {
	id       string
	exempt   bool
	cost     int64
	charges  []charge
	policies []*stint.Policy // of the charges
}

func (*route) ServeHTTP(http.ResponseWriter, *http.Request) {}

// charge is a Charge made ready.
type charge struct {
	policy     *stint.Policy
	subject    subject.Kind
	operation  string
	missing    Missing
	ipv6Prefix int
	everyone   stint.Pseudonym // for subject.Everyone
}

// table classifies requests by ServeMux patterns.
type table struct {
	mux       *http.ServeMux
	byPattern map[string]*route
	fallback  *route
}

// classify returns the route that a request is charged under. All spellings of
// a path that RFC 3986 §6.2.2 calls equivalent have one route, and so have the
// paths that a ServeMux redirects. An exemption holds for the canonical
// spelling only: what a server behind us makes of another is not known.
func (t *table) classify(r *http.Request) *route {
	if len(t.byPattern) == 0 {
		return t.fallback
	}
	q := canonical(r)
	h, pattern := t.mux.Handler(q)
	rt, direct := h.(*route)
	if !direct {
		if rt = t.byPattern[pattern]; rt == nil {
			return t.fallback
		}
	}
	if rt.exempt && (!direct || q != r || r.URL.RawPath != "") {
		return t.fallback
	}
	return rt
}

// canonical returns r, or a request for ServeMux to match in its place where
// the mux would not normalise enough: it leaves the case of the host, the
// percent-encoding of dots and the path of CONNECT as they are.
func canonical(r *http.Request) *http.Request {
	escaped := r.URL.EscapedPath()
	path, host := decodeDots(escaped), canonicalHost(r.Host)
	if r.Method == http.MethodConnect {
		path = clean(path)
	}
	if path == escaped && host == r.Host {
		return r
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return r
	}
	u := &url.URL{Path: decoded, RawPath: path}
	if r.Method == http.MethodConnect {
		u.Host = host
	}
	return &http.Request{Method: r.Method, Host: host, URL: u}
}

func decodeDots(escaped string) string {
	if !strings.Contains(escaped, "%2") {
		return escaped
	}
	return strings.ReplaceAll(strings.ReplaceAll(escaped, "%2e", "."), "%2E", ".")
}

func canonicalHost(host string) string {
	name, port, _ := strings.Cut(host, ":")
	lower := strings.ToLower(strings.TrimSuffix(name, "."))
	if lower == name {
		return host
	}
	if port != "" {
		lower += ":" + port
	}
	return lower
}

// clean does what ServeMux does to a path.
func clean(p string) string {
	cleaned := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}
