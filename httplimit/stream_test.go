package httplimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// events sends one event for each value of tick, so that a client that gets
// none before it ticks again proves that somebody buffers.
func events(tick <-chan int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range tick {
			fmt.Fprintf(w, "data: %d\n\n", n)
			w.(http.Flusher).Flush()
		}
	})
}

func readEvents(t *testing.T, res *http.Response, tick chan<- int) {
	t.Helper()
	body := bufio.NewReader(res.Body)
	for n := range 100 {
		if n > 0 {
			tick <- n
		}
		line, err := body.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", n); err != nil || line != want {
			t.Fatalf("got %q, %v; want %q", line, err, want)
		}
		if _, err := body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(tick)
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Error(err)
	}
}

// Case C55 of the field.
func TestEventsArriveOneByOne(t *testing.T) {
	tick := make(chan int, 1)
	s := serve(t, inMemory(t, 1).Handler(events(tick)))
	tick <- 0
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header["Ratelimit"]; len(got) != 1 || res.StatusCode != http.StatusOK {
		t.Errorf("status %d, RateLimit %q", res.StatusCode, got)
	}
	readEvents(t, res, tick)

	denied, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer denied.Body.Close()
	if denied.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second stream: status %d; the first was to cost one unit", denied.StatusCode)
	}
}

func TestHTTP2StreamsWork(t *testing.T) {
	tick := make(chan int, 1)
	s := httptest.NewUnstartedServer(inMemory(t, 1).Handler(events(tick)))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	tick <- 0
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.ProtoMajor != 2 || res.StatusCode != http.StatusOK || res.Header.Get("RateLimit") != `"api";r=0;t=86400` {
		t.Errorf("%s %d, RateLimit %q", res.Proto, res.StatusCode, res.Header.Get("RateLimit"))
	}
	readEvents(t, res, tick)
	denied, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer denied.Body.Close()
	if denied.StatusCode != http.StatusTooManyRequests || denied.ProtoMajor != 2 {
		t.Errorf("a second request: %s %d", denied.Proto, denied.StatusCode)
	}
}

// echo takes the connection over, as a WebSocket server does, and sends back
// each line it gets.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_ = rw.Flush()
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprint(rw, line)
		_ = rw.Flush()
	}
})

func upgrade(t *testing.T, s *httptest.Server) (*http.Response, net.Conn, *bufio.Reader) {
	t.Helper()
	return send(t, s, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
}

// send writes text as it is, and reads the answer.
func send(t *testing.T, s *httptest.Server, text string) (*http.Response, net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
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

// Case C55 of the field.
func TestOneSocketCostsOneUnit(t *testing.T) {
	s := serve(t, inMemory(t, 2).Handler(echo))
	for range 2 {
		res, conn, in := upgrade(t, s)
		if res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("status %d", res.StatusCode)
		}
		for n := range 100 {
			fmt.Fprintf(conn, "frame %d\n", n)
			if got, err := in.ReadString('\n'); err != nil || got != fmt.Sprintf("frame %d\n", n) {
				t.Fatalf("got %q, %v", got, err)
			}
		}
	}
	res, _, _ := upgrade(t, s)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Upgrade") != "" || !strings.Contains(string(body), "quota-exceeded") {
		t.Errorf("a denied upgrade: %d %v %s %v", res.StatusCode, res.Header, body, err)
	}
}

func TestResponseControllerReachesTheConnection(t *testing.T) {
	result := make(chan error, 1)
	s := serve(t, inMemory(t, 1).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		err := errors.Join(
			c.EnableFullDuplex(),
			c.SetWriteDeadline(time.Now().Add(time.Minute)),
			c.SetReadDeadline(time.Now().Add(-time.Second)),
		)
		if _, readErr := io.ReadAll(r.Body); !errors.Is(readErr, os.ErrDeadlineExceeded) {
			err = errors.Join(err, fmt.Errorf("reading past the deadline: %w", readErr))
		}
		w.WriteHeader(http.StatusAccepted)
		result <- errors.Join(err, c.Flush())
	})))
	body, stalled := io.Pipe()
	defer func() { _ = stalled.Close() }()
	res, err := s.Client().Post(s.URL, "text/plain", body)
	if err == nil {
		defer res.Body.Close()
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestTheWriterIsTheServersOwn(t *testing.T) {
	rec := httptest.NewRecorder()
	var got http.ResponseWriter
	inMemory(t, 1).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })).
		ServeHTTP(rec, request("GET", "/"))
	if got != http.ResponseWriter(rec) {
		t.Errorf("the handler got a %T", got)
	}
}

// A proxy behind the limit would send such a target on as it is.
func TestATargetThatIsNoPathIsAnsweredHere(t *testing.T) {
	next := &counting{Handler: hello}
	s := serve(t, inMemory(t, 1).Handler(next))
	res, _, _ := send(t, s, "POST a:http://x/orders/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusBadRequest || res.Header.Get("Content-Type") != "application/problem+json" || next.reached != 0 {
		t.Errorf("%d %v %s, %v; the handler was reached %d times", res.StatusCode, res.Header, body, err, next.reached)
	}
}

// exhausted starts a server that refuses.
func exhausted(t *testing.T) *httptest.Server {
	t.Helper()
	s := serve(t, inMemory(t, 1).Handler(hello))
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return s
}

// net/http reads a body up to 256 KiB before it answers.
func TestARefusalWaitsForNoBody(t *testing.T) {
	for name, request := range map[string]string{
		"of a stated length":        "Content-Length: 1000\r\n\r\n",
		"begun and not ended":       "Content-Length: 1000\r\n\r\nbegun",
		"in chunks":                 "Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n",
		"of which no chunk arrives": "Transfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := exhausted(t)
			res, conn, in := send(t, s, "POST / HTTP/1.1\r\nHost: x\r\n"+request)
			if res.StatusCode != http.StatusTooManyRequests || !res.Close {
				t.Errorf("status %d, and the connection stays: %v", res.StatusCode, !res.Close)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Error(err)
			}
			// What is sent late must not be taken for a request.
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if rest, _ := io.ReadAll(in); len(rest) != 0 {
				t.Errorf("more was answered: %q", rest)
			}
		})
	}
}

func TestRefusalsWithBodiesKeepTheConnection(t *testing.T) {
	s := exhausted(t)
	post := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	res, conn, in := send(t, s, post)
	for n := range 3 {
		if n > 0 {
			fmt.Fprint(conn, post)
			var err error
			if res, err = http.ReadResponse(in, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusTooManyRequests || res.Close {
			t.Fatalf("request %d: status %d, closes %v, %v", n, res.StatusCode, res.Close, err)
		}
	}
}

func TestHEADHasFieldsAndNoBody(t *testing.T) {
	s := serve(t, inMemory(t, 1).Handler(hello))
	for _, status := range []int{200, 429} {
		res, err := s.Client().Head(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || len(body) != 0 || res.StatusCode != status || res.Header.Get("RateLimit") == "" {
			t.Errorf("status %d, want %d; body %q, RateLimit %q, %v", res.StatusCode, status, body, res.Header.Get("RateLimit"), err)
		}
	}
}

func TestConcurrentRequestsGetExactlyTheBudget(t *testing.T) {
	h := inMemory(t, 50).Handler(hello)
	statuses := make(chan int)
	for range 200 {
		go func() { statuses <- get(h, "/").StatusCode }()
	}
	count := map[int]int{}
	for range 200 {
		count[<-statuses]++
	}
	if count[200] != 50 || count[429] != 150 {
		t.Errorf("got %v", count)
	}
}
