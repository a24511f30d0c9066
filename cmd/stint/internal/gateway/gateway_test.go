package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// behind starts an upstream, and a server that sends on to it. Fields are what
// a limit in front sets on each response.
func behind(t *testing.T, c Config, fields http.Header, upstream http.HandlerFunc) *httptest.Server {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	if c.Upstream == nil {
		u, err := url.Parse(up.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.Upstream = u
	}
	c.Logger = slog.New(slog.DiscardHandler)
	p := New(c)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), fields)
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	t.Cleanup(p.Close)
	return front
}

func get(t *testing.T, target string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestPathAndQueryAreKeptBehindTheUpstreamsPath(t *testing.T) {
	var seen []string
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.RequestURI) }))
	defer up.Close()
	u, err := url.Parse(up.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	front := behind(t, Config{Upstream: u}, nil, nil)
	get(t, front.URL+"/a%2Fb//c?x=1&y;=2", nil)
	get(t, front.URL, nil)
	if diff := cmp.Diff([]string{"/base/a%2Fb//c?x=1&y;=2", "/base/"}, seen); diff != "" {
		t.Errorf("upstream saw (-want +got):\n%s", diff)
	}
}

func TestForwardingHeaders(t *testing.T) {
	given := http.Header{
		"X-Forwarded-For":   {"192.0.2.1"},
		"X-Forwarded-Proto": {"https"},
		"X-Forwarded-Host":  {"example.org"},
		"Forwarded":         {"for=192.0.2.1"},
		"X_forwarded_for":   {"192.0.2.9"},
		"X-Auth-User":       {"alice"},
		"X_auth_user":       {"mallory"},

		"X-Forwarded-Port":   {"443"},
		"X-Forwarded-Prefix": {"/admin"},
		"X_forwarded-Prefix": {"/admin"},
		"X-Real-Ip":          {"192.0.2.1"},
		"X_real_ip":          {"192.0.2.9"},
		"X-Client":           {"192.0.2.1"},
		"X_client":           {"192.0.2.9"},
		"X-Api-Key":          {"key"},
		"X_api_key":          {"another"},
		"X_other":            {"kept"},
	}
	for name, tt := range map[string]struct {
		trusted bool
		want    map[string]string
	}{
		"of a trusted peer are kept, and the peer is added": {true, map[string]string{
			"X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "example.org",
			"Forwarded": "for=192.0.2.1", "X-Auth-User": "alice", "X_forwarded_for": "", "X_auth_user": "",
			"X-Forwarded-Port": "443", "X-Forwarded-Prefix": "/admin", "X_forwarded-Prefix": "", "X-Real-Ip": "192.0.2.1",
			"X_real_ip": "", "X-Client": "192.0.2.1", "X_client": "", "X-Api-Key": "key", "X_api_key": "", "X_other": "kept",
		}},
		"of anybody else are replaced": {false, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "HOST",
			"Forwarded": "", "X-Auth-User": "", "X_forwarded_for": "", "X_auth_user": "",
			"X-Forwarded-Port": "", "X-Forwarded-Prefix": "", "X_forwarded-Prefix": "", "X-Real-Ip": "",
			"X_real_ip": "", "X-Client": "", "X_client": "", "X-Api-Key": "key", "X_api_key": "", "X_other": "kept",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			c := Config{
				ClientIPHeader: "X-Client", PrincipalHeader: "X-Auth-User", APIKeyHeader: "X-API-Key",
				Trusted: func(string) bool { return tt.trusted },
			}
			front := behind(t, c, nil, func(_ http.ResponseWriter, r *http.Request) {
				for h := range tt.want {
					got[h] = strings.Join(r.Header[h], "|")
				}
			})
			if !tt.trusted {
				tt.want["X-Forwarded-Host"] = strings.TrimPrefix(front.URL, "http://")
			}
			get(t, front.URL, given.Clone())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// C20: exactly one value for each field, whatever both sides set.
func TestEachFieldHasOneLine(t *testing.T) {
	ours := http.Header{"Ratelimit": {`"api";r=9;t=1`}, "Ratelimit-Policy": {`"api";q=10;w=10`}}
	for name, tt := range map[string]struct{ upstream, want string }{
		"the upstream says nothing":          {"", `"api";r=9;t=1`},
		"the upstream has limits of its own": {`"inner";r=1`, `"api";r=9;t=1, "inner";r=1`},
		"the upstream speaks an older draft": {"limit=10, remaining=5, reset=1", `"api";r=9;t=1`},
		"the upstream writes nonsense":       {`"inner`, `"api";r=9;t=1`},
	} {
		t.Run(name, func(t *testing.T) {
			front := behind(t, Config{}, ours, func(w http.ResponseWriter, _ *http.Request) {
				if tt.upstream != "" {
					w.Header().Set("RateLimit", tt.upstream)
				}
				w.Header().Set("X-RateLimit-Remaining", "7")
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusTeapot)
			})
			res, _ := get(t, front.URL, nil)
			got := map[string][]string{}
			for _, h := range []string{"Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Remaining"} {
				got[h] = res.Header[h]
			}
			want := map[string][]string{
				"Ratelimit": {tt.want}, "Ratelimit-Policy": {`"api";q=10;w=10`}, "X-Ratelimit-Remaining": {"7"},
			}
			if diff := cmp.Diff(want, got); diff != "" || res.StatusCode != http.StatusTeapot {
				t.Errorf("status %d, fields (-want +got):\n%s", res.StatusCode, diff)
			}
		})
	}
}

func TestUpstreamsFieldsPassWhereThereAreNone(t *testing.T) {
	front := behind(t, Config{}, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", "limit=10, remaining=5, reset=1")
	})
	if res, _ := get(t, front.URL, nil); res.Header.Get("RateLimit") != "limit=10, remaining=5, reset=1" {
		t.Errorf("RateLimit: %q", res.Header["Ratelimit"])
	}
}

func TestAnUpstreamThatIsGoneIsABadGateway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	var reported error
	c := Config{Upstream: &url.URL{Scheme: "http", Host: gone}, OnError: func(err error) { reported = err }}
	front := behind(t, c, http.Header{"Ratelimit": {`"api";r=9`}}, nil)
	res, body := get(t, front.URL, nil)
	if res.StatusCode != http.StatusBadGateway || res.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(body, `"status":502`) || strings.Contains(body, gone) {
		t.Errorf("status %d, %v, body %s", res.StatusCode, res.Header, body)
	}
	if len(res.Header["Ratelimit"]) != 1 || res.Header.Get("Retry-After") != "" {
		t.Errorf("fields: %v", res.Header)
	}
	if reported == nil {
		t.Error("nobody was told")
	}
}

func TestEventsArriveOneByOne(t *testing.T) {
	next := make(chan struct{})
	front := behind(t, Config{}, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-something")
		for i := range 3 {
			fmt.Fprintf(w, "event %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, front.URL, nil)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("event %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		next <- struct{}{}
	}
}

func TestAnUpgradedConnectionCarriesBothWays(t *testing.T) {
	front := behind(t, Config{}, nil, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil || r.Header.Get("Upgrade") != "WebSocket" {
			t.Errorf("hijack: %v, upgrade %q", err, r.Header.Get("Upgrade"))
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "you said ", line)
		_ = rw.Flush()
	})
	res, conn, in := converse(t, front, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n")
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("response %v", res)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "you said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// converse writes text to the server as it is, reads the head of the answer,
// and keeps the connection.
func converse(t *testing.T, s *httptest.Server, text string) (*http.Response, net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, text)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res, conn, in
}

// What passes a connection after an upgrade to HTTP/2 nobody would charge.
func TestNothingButWebSocketIsAnUpgrade(t *testing.T) {
	for _, protocol := range []string{"h2c", "echo", "websocket, h2c", "h2c, websocket", "h2c\r\nUpgrade: websocket"} {
		t.Run(protocol, func(t *testing.T) {
			seen := make(chan http.Header, 1)
			front := behind(t, Config{}, nil, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
			res, _, _ := converse(t, front, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"+
				"HTTP2-Settings: AAMAAABkAAQAAP__\r\nUpgrade: "+protocol+"\r\n\r\n")
			if res.StatusCode != http.StatusOK {
				t.Fatalf("status %d", res.StatusCode)
			}
			h := <-seen
			for _, name := range []string{"Upgrade", "Connection", "Http2-Settings"} {
				if v, there := h[name]; there {
					t.Errorf("%s: %q", name, v)
				}
			}
		})
	}
}

// Settings for HTTP/2 go on beside no upgrade either, named by Connection or
// not.
func TestHTTP2SettingsAreNotSentOn(t *testing.T) {
	front := behind(t, Config{}, nil, func(_ http.ResponseWriter, r *http.Request) {
		if v, there := r.Header["Http2-Settings"]; there {
			t.Errorf("HTTP2-Settings: %q", v)
		}
	})
	get(t, front.URL, http.Header{"HTTP2-Settings": {"AAMAAABkAAQAAP__"}})
}

// net/http keeps such a target in URL.Opaque, and sends it in place of a path.
func TestATargetThatIsNoPathReachesNoPath(t *testing.T) {
	seen := make(chan string, 1)
	front := behind(t, Config{}, nil, func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI })
	res, _, _ := converse(t, front, "POST a:http://x/orders/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	if got := <-seen; got != "/" {
		t.Errorf("the upstream got %q", got)
	}
}

func TestPageAdmits(t *testing.T) {
	w := httptest.NewRecorder()
	Page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/any", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), "upstream") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
