// Package gateway is what stands behind the limit: a reverse proxy to one
// upstream, or a small page where there is none.
//
// It sends on what reaches it. It neither limits, retries, caches nor balances
// load, and it keeps no identity.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Config says where requests go.
type Config struct {
	Upstream *url.URL // required; its path is put before that of requests

	// Trusted reports whether a peer may say for whom it forwards. The
	// forwarding headers of others are replaced. Nil trusts nobody.
	Trusted func(remoteAddr string) bool

	// ClientIPHeader and PrincipalHeader are removed from requests of peers
	// that are not trusted: the upstream believes them because they come
	// from here.
	ClientIPHeader, PrincipalHeader string

	// APIKeyHeader is sent on as it came. A header that some upstreams take
	// for it, because they read '_' as '-', is removed: nobody charged it.
	APIKeyHeader string

	// OnError is told of each request that the upstream did not answer.
	OnError func(error)

	// Logger gets what the proxy has to say about broken connections.
	Logger *slog.Logger // required
}

// Proxy sends requests on to an upstream. It is safe for concurrent use.
type Proxy struct {
	reverse   *httputil.ReverseProxy
	transport *http.Transport
}

// New returns a proxy. It opens no connection.
func New(c Config) *Proxy {
	if c.Trusted == nil {
		c.Trusted = func(string) bool { return false }
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	t := newTransport()
	return &Proxy{transport: t, reverse: &httputil.ReverseProxy{
		Transport:      t,
		FlushInterval:  -1, // an event is worth nothing in a buffer
		Rewrite:        func(pr *httputil.ProxyRequest) { rewrite(&c, pr) },
		ModifyResponse: mergeFields,
		ErrorLog:       slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			restoreFields(w, r)
			if isBodyBroken(r) { // no fault of the upstream
				problem(w, http.StatusBadRequest, "The body of the request could not be read.")
				return
			}
			if !errors.Is(err, context.Canceled) {
				c.OnError(err)
			}
			answer(w, err)
		},
	}}
}

// ServeHTTP sends the request on. RateLimit fields that are set on the
// response already are kept: see mergeFields.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.reverse.ServeHTTP(w, rememberFields(w, rememberBody(r)))
}

// Close closes idle connections to the upstream.
func (p *Proxy) Close() { p.transport.CloseIdleConnections() }

// newTransport has no limit on how long an answer takes once it has begun:
// streams may last.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
		DisableCompression:    true,
	}
}

// answer says that the upstream did not, without saying where it is.
func answer(w http.ResponseWriter, err error) {
	status, detail := http.StatusBadGateway, "The server behind this one did not answer."
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		status, detail = http.StatusGatewayTimeout, "The server behind this one did not answer in time."
	}
	problem(w, status, detail)
}

func problem(w http.ResponseWriter, status int, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, detail})
}

// Page answers every request that is admitted where there is no upstream.
func Page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "Admitted.\n\nThis is stint, with nothing behind it: set `upstream` to send admitted requests on.\n")
	})
}
