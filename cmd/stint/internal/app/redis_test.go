package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/redistest"
)

// onRedis is the example, with windows that no test outlasts.
const onRedis = `
upstream: %s
deadline: 750ms
failure: {retry_after: 2s}
store: {redis: {addresses: ["%s"], prefix: e2e}}
identity:
  pseudonym_keys: [{version: 1, file: key.txt}]
  trusted_proxies: [127.0.0.0/8]
policies:
  - id: api
    limits:
      - token-bucket: {capacity: 3, refill: 1, every: 1h}
      - fixed-window: {limit: 1000, window: 100d, name: daily}
  - {id: address, limits: [{token-bucket: {capacity: 5, refill: 1, every: 1h}}]}
routes:
  - id: orders
    match: "POST /orders/{id}"
    charge:
      - {policy: api, subject: api-key, missing: skip}
      - {policy: address, subject: client-ip}
default: {charge: [{policy: address, subject: client-ip}]}
`

const apiKey = "sk_live_0123456789"

func TestOrdersOnRedis(t *testing.T) {
	server := redistest.Start(t)
	up := newUpstream(t, nil)
	s := start(t, fmt.Sprintf(onRedis, up.URL, server.Addr()))
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	order := func(address string) response {
		return s.do("POST", "/orders/7", "X-API-Key", apiKey, "X-Forwarded-For", address)
	}

	for i := range 3 {
		// Scripts that vanish are loaded again, and nothing is charged for it.
		redisDo(t, server.Addr(), "SCRIPT", "FLUSH")
		r := order("192.0.2.77")
		if want := fmt.Sprintf(`"api-1";r=%d`, 2-i); r.status != 200 || !strings.Contains(r.header.Get("RateLimit"), want) {
			t.Fatalf("order %d: %d %v", i, r.status, r.header)
		}
	}
	if r := order("192.0.2.78"); r.status != 429 || !strings.Contains(r.body, `["api-1"]`) {
		t.Errorf("the key's budget is spent from another address: %d %s", r.status, r.body)
	}
	// The refusal spent nothing of the address's budget.
	if r := s.do("POST", "/orders/7", "X-Forwarded-For", "192.0.2.78"); !strings.Contains(r.header.Get("RateLimit"), `"address";r=4`) {
		t.Errorf("RateLimit: %q", r.header.Get("RateLimit"))
	}
	if up.count() != 4 {
		t.Errorf("%d requests reached the upstream, want 4", up.count())
	}
	checkKeys(t, server.Addr())
}

var counterKey = regexp.MustCompile(`^e2e:\{v1:[A-Za-z0-9_-]{22}\}:(api|address):1:[a-z0-9-]+$`)

// checkKeys looks at everything on the server.
func checkKeys(t *testing.T, addr string) {
	t.Helper()
	keys := redisDo(t, addr, "KEYS", "*")
	counters := 0
	for _, key := range keys {
		if !strings.HasPrefix(key, "e2e:") {
			t.Errorf("key %q is not under the prefix", key)
		}
		if counterKey.MatchString(key) {
			counters++
		}
		value := strings.Join(redisDo(t, addr, "DUMP", key), "")
		for _, identity := range []string{apiKey, "192.0.2.7"} {
			if strings.Contains(key+value, identity) {
				t.Errorf("key %q holds %q", key, identity)
			}
		}
		if ttl, _ := strconv.Atoi(redisDo(t, addr, "PTTL", key)[0]); ttl < 1 {
			t.Errorf("key %q has the TTL %d", key, ttl)
		}
	}
	if counters != 3 { // one key, two addresses
		t.Errorf("%d counters in %q", counters, keys)
	}
}

// C40: a server that starts without Redis lives, admits nobody, and needs no
// restart. C41: an outage is 503, with no figures, and reaches no upstream.
func TestStartingWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	up := newUpstream(t, nil)
	s := start(t, fmt.Sprintf(onRedis, up.URL, server.Addr()))
	if r := s.operator("/livez"); r.status != 200 {
		t.Errorf("/livez: %d", r.status)
	}
	if r := s.operator("/readyz"); r.status != 503 || !strings.Contains(r.body, "store") {
		t.Errorf("/readyz: %d %q", r.status, r.body)
	}
	for range 5 {
		checkOutage(t, s)
	}
	if up.count() != 0 {
		t.Errorf("%d requests reached the upstream", up.count())
	}
	if !s.counted(`stint_decisions_total{outcome="unavailable",policy="address"} 5`) ||
		!s.counted(`stint_decisions_total{outcome="denied",policy="address"} 0`) {
		t.Error("the outage is not counted apart from denials")
	}
	if n := s.log.count("rate limit not decided"); n != 1 {
		t.Errorf("%d lines for 5 failures", n)
	}
	if n := s.log.count("level=ERROR"); n > 2 {
		t.Errorf("%d error lines", n)
	}

	server.Restart()
	// A connection that failed is tried again after a second, and a ping later
	// the server is ready; the rest is for a loaded machine.
	eventually(t, 3*time.Second, "ready after Redis has appeared", func() bool { return s.operator("/readyz").status == 200 })
	eventually(t, 3*time.Second, "admitting", func() bool { return s.do("GET", "/").status == 200 })
	if up.count() != 1 {
		t.Errorf("%d requests reached the upstream, want 1", up.count())
	}
}

func checkOutage(t *testing.T, s *running) {
	t.Helper()
	asked := time.Now()
	r := s.do("GET", "/")
	if elapsed := time.Since(asked); elapsed > 1500*time.Millisecond { // the deadline, and a loaded machine
		t.Errorf("answered after %v", elapsed)
	}
	if r.status != 503 || r.header.Get("Retry-After") != "2" || r.header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(r.body, "temporary-reduced-capacity") {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	for name := range r.header {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			t.Errorf("%s: %q is invented", name, r.header.Get(name))
		}
	}
}

func TestAnOutageHealsWithoutARestart(t *testing.T) {
	server := redistest.Start(t)
	up := newUpstream(t, nil)
	s := start(t, fmt.Sprintf(onRedis, up.URL, server.Addr()))
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	if r := s.do("GET", "/"); r.status != 200 {
		t.Fatalf("%d", r.status)
	}
	server.Kill()
	checkOutage(t, s)
	eventually(t, patience, "not ready", func() bool { return s.operator("/readyz").status == 503 })
	checkOutage(t, s)
	server.Restart()
	eventually(t, 2*time.Second, "admitting again", func() bool { return s.do("GET", "/").status == 200 })
}

func TestAServerThatHangsIsAnOutage(t *testing.T) {
	server := redistest.Start(t)
	s := start(t, fmt.Sprintf(onRedis, newUpstream(t, nil).URL, server.Addr()))
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	server.Pause()
	checkOutage(t, s)
	server.Resume()
	eventually(t, patience, "admitting again", func() bool { return s.do("GET", "/").status == 200 })
}

// redisDo sends one command and returns its reply: one element, or those of an
// array.
func redisDo(t *testing.T, addr string, args ...string) []string {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(c, "$%d\r\n%s\r\n", len(a), a)
	}
	reply, err := readReply(bufio.NewReader(c))
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

func readReply(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(line[1:], "\r\n")
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '-':
		return nil, fmt.Errorf("%s", text)
	case '$':
		b := make([]byte, max(0, n)+2)
		_, err := io.ReadFull(r, b)
		return []string{string(b[:max(0, n)])}, err
	case '*':
		var all []string
		for range n {
			one, err := readReply(r)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	}
	return []string{text}, nil
}
