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
// paths that a ServeMux redirects. Where that finds none, encoded separators
// count as separators, as they do for some servers. An exemption holds for the
// canonical spelling only: what a server behind us makes of another is not
// known.
func (t *table) classify(r *http.Request) *route {
	if len(t.byPattern) == 0 {
		return t.fallback
	}
	q := canonical(r)
	rt, direct := t.match(q)
	if rt.exempt && (!direct || q != r || r.URL.RawPath != "" || strings.ContainsAny(r.URL.Path, ambiguous)) {
		rt = t.fallback
	}
	if rt != t.fallback || !hasEncodedSeparator(r.URL.EscapedPath()) {
		return rt
	}
	if rt, _ = t.match(separated(r)); rt.exempt {
		return t.fallback
	}
	return rt
}

// ambiguous are characters of a decoded path that servers read differently:
// ';' begins a parameter, or does not; '\' is a '/', or is not; and what is
// left of '%' is decoded once more, or is not.
const ambiguous = `;\%`

// match returns the route that ServeMux finds, and whether it would serve the
// request as it stands, without a redirect.
func (t *table) match(r *http.Request) (rt *route, direct bool) {
	h, pattern := t.mux.Handler(r)
	if rt, direct = h.(*route); direct {
		return rt, true
	}
	if rt = t.byPattern[pattern]; rt == nil {
		return t.fallback, false
	}
	return rt, false
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
	return stand(r, &url.URL{Path: decoded, RawPath: path})
}

// separated returns a request for ServeMux to match in place of r, as a server
// sees it that decodes first and takes '/' and '\' for separators then.
func separated(r *http.Request) *http.Request {
	return stand(r, &url.URL{Path: clean(strings.ReplaceAll(r.URL.Path, `\`, "/"))})
}

// stand returns a request that ServeMux matches as r, but with the path of u.
func stand(r *http.Request, u *url.URL) *http.Request {
	host := canonicalHost(r.Host)
	if r.Method == http.MethodConnect {
		u.Host = host
	}
	return &http.Request{Method: r.Method, Host: host, URL: u}
}

func hasEncodedSeparator(escaped string) bool {
	for rest := escaped; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return false
		}
		if len(after) >= 2 {
			switch after[:2] {
			case "2f", "2F", "5c", "5C":
				return true
			}
		}
		rest = after
	}
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
