package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintlimit/stint/cmd/stint/internal/config"
)

const tenEachTime = `
policies: [{id: api, limits: [{token-bucket: {capacity: 10, refill: 10, every: 1h}}]}]
default: {charge: [{policy: api, subject: client-ip}]}
`

func TestTenPassAndTheNextIsRefused(t *testing.T) {
	s := start(t, tenEachTime)
	for i := range 10 {
		r := s.do("GET", "/")
		if r.status != 200 || r.header.Get("RateLimit") == "" || r.header.Get("RateLimit-Policy") != `"api";q=10;w=3600` {
			t.Fatalf("request %d: %d %v", i, r.status, r.header)
		}
	}
	r := s.do("GET", "/")
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "RateLimit-Policy": `"api";q=10;w=3600`,
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.status != 429 || r.header.Get("Retry-After") == "" || !strings.HasPrefix(r.header.Get("RateLimit"), `"api";r=0;t=`) ||
		!strings.Contains(r.body, `"violated-policies":["api"]`) {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	for _, line := range []string{
		`stint_decisions_total{outcome="allowed",policy="api"} 10`,
		`stint_decisions_total{outcome="denied",policy="api"} 1`,
		`stint_decision_duration_seconds_count 11`,
	} {
		if !s.counted(line) {
			t.Errorf("not counted: %s", line)
		}
	}
}

func TestProbesSayOkWhileServing(t *testing.T) {
	s := start(t, tenEachTime)
	for _, path := range []string{"/livez", "/readyz"} {
		if r := s.operator(path); r.status != 200 || r.body != "ok\n" {
			t.Errorf("%s: %d %q", path, r.status, r.body)
		}
	}
	if r := s.operator("/"); r.status != 404 {
		t.Errorf("/: %d", r.status)
	}
}

func TestProbesAndMetricsAreNotForClients(t *testing.T) {
	s := start(t, tenEachTime)
	if r := s.do("GET", "/metrics"); strings.Contains(r.body, "stint_decisions_total") {
		t.Error("metrics are served where requests are limited")
	}
}

func TestNothingIsLimitedIfNothingIsCharged(t *testing.T) {
	s := start(t, "policies: [{id: api, limits: [{fixed-window: {limit: 1, window: 1h}}]}]\ndefault: {charge: []}\n")
	for range 5 {
		if r := s.do("GET", "/"); r.status != 200 || r.header.Get("RateLimit") != "" {
			t.Errorf("%d %v", r.status, r.header)
		}
	}
	if s.log.count("nothing is limited") != 1 {
		t.Error("nobody was warned")
	}
}

func TestDrainingLetsRequestsEnd(t *testing.T) {
	release := make(chan struct{})
	up := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		fmt.Fprint(w, "done")
	})
	s := start(t, "upstream: "+up.URL+tenEachTime)
	answered := make(chan response, 1)
	go func() { answered <- s.do("GET", "/") }()
	eventually(t, patience, "the request reaches the upstream", func() bool { return up.count() == 1 })

	s.stop()
	eventually(t, patience, "not ready while draining", func() bool { return s.operator("/readyz").status == 503 })
	eventually(t, patience, "no new connections", func() bool {
		c, err := net.Dial("tcp", s.Listen)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if r := s.operator("/livez"); r.status != 200 {
		t.Errorf("/livez while draining: %d", r.status)
	}
	close(release)
	if r := <-answered; r.status != 200 || r.body != "done" {
		t.Errorf("request in flight: %d %q", r.status, r.body)
	}
	s.end()
}

func TestDrainingEndsAtItsTimeout(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	up := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := start(t, "drain_timeout: 50ms\nupstream: "+up.URL+tenEachTime)
	failed := make(chan error, 1)
	go func() {
		res, err := http.Get("http://" + s.Listen)
		if err == nil {
			res.Body.Close()
		}
		failed <- err
	}()
	eventually(t, patience, "the request reaches the upstream", func() bool { return up.count() == 1 })
	s.end()
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	if s.log.count("cut off") != 1 {
		t.Error("nothing was logged")
	}
}

func TestDrainingWaitsForUpgradedConnections(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, line)
		_ = rw.Flush()
	})
	s := start(t, "upstream: "+up.URL+tenEachTime)
	conn, err := net.Dial("tcp", s.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	buf := make([]byte, 4096)
	if n, err := conn.Read(buf); err != nil || !strings.Contains(string(buf[:n]), "101 Switching") {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	s.stop()
	eventually(t, patience, "draining", func() bool { return s.operator("/readyz").status == 503 })
	fmt.Fprint(conn, "still here\n")
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "still here\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	conn.Close()
	s.end()
	if s.log.count("cut off") != 0 {
		t.Error("the connection was cut off")
	}
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]config.Overrides{
		"listen":       {Listen: taken.Addr().String(), AdminListen: "127.0.0.1:0"},
		"admin.listen": {Listen: "127.0.0.1:0", AdminListen: taken.Addr().String()},
	} {
		example, err := config.Example(c)
		if err != nil {
			t.Fatal(err)
		}
		err = Run(t.Context(), example, Options{})
		var op *net.OpError
		if !errors.As(err, &op) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Whatever config accepts, the rest of the server accepts too: nothing is left
// to go wrong after `stint check`.
func TestEveryGoodFileMakesAServer(t *testing.T) {
	t.Setenv("STINT_TEST_PASSWORD", "a password for tests")
	t.Setenv("STINT_TEST_KEY", "YW5vdGhlciBrZXkgZm9yIHRlc3RzLCBhbmQgbm90aGluZyBlbHNl")
	files, err := filepath.Glob("../config/testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	for _, file := range files {
		c, err := config.Load(file, config.Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := build(c, Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		s.close()
	}
}

func TestLogsAreTextOrJSON(t *testing.T) {
	var b strings.Builder
	NewLogger(&b, config.Log{JSON: true, Level: slog.LevelWarn}).Info("hidden")
	NewLogger(&b, config.Log{JSON: true}).Info("shown")
	NewLogger(&b, config.Log{}).Info("plain")
	if got := b.String(); strings.Contains(got, "hidden") || !strings.Contains(got, `"msg":"shown"`) || !strings.Contains(got, "msg=plain") {
		t.Errorf("%s", got)
	}
}

func TestFailuresOfOneKindAreLoggedOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b logBuffer
		l := newUpstreamLog(slog.New(slog.NewTextHandler(&b, nil)))
		for range 5 {
			l.failed(os.ErrClosed)
		}
		if b.count("did not answer") != 1 {
			t.Errorf("%d lines", b.count("did not answer"))
		}
		<-time.After(upstreamLogInterval)
		l.failed(os.ErrClosed)
		if b.count("did not answer") != 2 || b.count("unlogged=4") != 1 {
			t.Errorf("%s", b.b.String())
		}
	})
}

func TestReadinessFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		s := &store{timeout: time.Second, ping: func(context.Context) error {
			if up.Load() {
				return nil
			}
			return errors.New("down")
		}}
		r := newReadiness(s)
		r.serving.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var b logBuffer
		go r.watch(ctx, s, slog.New(slog.NewTextHandler(&b, nil)))
		expect := func(when string, ready bool) {
			t.Helper()
			synctest.Wait()
			if got := len(r.obstacles()) == 0; got != ready {
				t.Errorf("%s: ready = %v", when, got)
			}
		}
		expect("at the start, down", false)
		up.Store(true)
		<-time.After(pingInterval)
		expect("one interval after the store came", true)
		up.Store(false)
		<-time.After((pingFailures - 1) * pingInterval)
		expect("after too few failures to be sure", true)
		<-time.After(pingInterval)
		expect("after enough", false)
		<-time.After(time.Hour)
		if n := b.count("level=ERROR"); n != 2 {
			t.Errorf("%d lines for two outages:\n%s", n, b.b.String())
		}
		cancel()
		synctest.Wait()
	})
}
