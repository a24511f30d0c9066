package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sendText writes a request as it stands, and reads the answer.
func sendText(t *testing.T, address, text string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, text)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(answer)
}

func TestAClientsBrokenBodyIsNoFaultOfTheUpstream(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, text := range map[string]string{
		"garbage for a chunk":    head + "zz\r\nnothing\r\n",
		"garbage after a chunk":  head + "3\r\nabcdef\r\n",
		"a chunk that never was": head + "3\r\nabc\r\n5\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var told atomic.Int32
			c := Config{OnError: func(error) { told.Add(1) }}
			front := behind(t, c, http.Header{"Ratelimit": {`"api";r=9`}}, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			})
			res, answer := sendText(t, strings.TrimPrefix(front.URL, "http://"), text)
			if res.StatusCode != http.StatusBadRequest || res.Header.Get("Content-Type") != "application/problem+json" ||
				!strings.Contains(answer, `"status":400`) {
				t.Errorf("status %d, %v, body %s", res.StatusCode, res.Header, answer)
			}
			if len(res.Header["Ratelimit"]) != 1 {
				t.Errorf("fields: %v", res.Header)
			}
			if n := told.Load(); n != 0 {
				t.Errorf("told of %d faults of the upstream", n)
			}
		})
	}
}

func TestAGoneUpstreamIsAtFaultWhateverTheBody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	var told atomic.Int32
	front := behind(t, Config{Upstream: &url.URL{Scheme: "http", Host: gone}, OnError: func(error) { told.Add(1) }}, nil, nil)
	res, err := http.Post(front.URL, "text/plain", strings.NewReader("a sound body"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusBadGateway || told.Load() != 1 {
		t.Errorf("status %d, told %d times", res.StatusCode, told.Load())
	}
}
