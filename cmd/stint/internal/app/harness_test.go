package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/subject"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

const patience = 15 * time.Second

// running is a server under test.
type running struct {
	Addresses
	t    *testing.T
	stop context.CancelFunc
	done chan error
	log  *logBuffer
}

// start runs the server that the text describes, on free ports, and stops it
// when the test ends.
func start(t *testing.T, text string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &running{t: t, stop: cancel, done: make(chan error, 1), log: &logBuffer{}}
	started := make(chan Addresses, 1)
	c := load(t, text)
	go func() {
		s.done <- Run(ctx, c, Options{
			Version: "v0", Logger: slog.New(slog.NewTextHandler(s.log, nil)),
			Started: func(a Addresses) { started <- a },
		})
	}()
	select {
	case s.Addresses = <-started:
	case err := <-s.done:
		t.Fatalf("Run: %v", err)
	}
	t.Cleanup(s.end)
	return s
}

func load(t *testing.T, text string) *config.Config {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stint.yaml")
	key := filepath.Join(filepath.Dir(name), "key.txt")
	for file, content := range map[string]string{name: text, key: subject.GenerateKey()} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(name, config.Overrides{Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"})
	if err != nil {
		t.Fatalf("the configuration is refused:\n%v", err)
	}
	return c
}

// end stops the server and expects it to end well.
func (s *running) end() {
	s.stop()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("Run: %v", err)
		}
		s.done <- nil
	case <-time.After(patience):
		s.t.Error("the server does not end")
	}
}

// response is what a test looks at of an http.Response.
type response struct {
	status int
	header http.Header
	body   string
}

func (s *running) do(method, path string, header ...string) response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Listen+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.send(r)
}

func (s *running) operator(path string) response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.Admin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(r)
}

func (s *running) send(r *http.Request) response {
	s.t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, string(body)}
}

// counted reports whether /metrics has the line.
func (s *running) counted(line string) bool {
	s.t.Helper()
	return strings.Contains(s.operator("/metrics").body, line+"\n")
}

// eventually waits until a condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-tick.C
	}
}

// logBuffer is what a server logged. It is safe for concurrent use.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// upstream counts what reaches it.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newUpstream(t *testing.T, h http.HandlerFunc) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.seen = append(u.seen, r)
		u.mu.Unlock()
		if h != nil {
			h(w, r)
		}
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.seen)
}
