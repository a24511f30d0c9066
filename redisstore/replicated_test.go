package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// secured returns a client for servers with certificates and a password.
func secured(t testing.TB, addr string, trust *tls.Config, password string) *redis.Client {
	t.Helper()
	silenceClient()
	c := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: trust, Password: password, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wantAllowed(t testing.TB, s *Store) {
	t.Helper()
	single, _ := anyPolicies(t)
	decide(t, s, group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1}))
}

// C39: TLS is verified, by the name that was configured, and what does not
// verify is a failure of the connection.
func TestTLSIsVerified(t *testing.T) {
	ca, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	server := redistest.StartTLS(t, ca.Issue("redis.test", time.Now().Add(time.Hour)), "--requirepass", "p@ss:/word")
	stale := redistest.NewAuthority(t)
	_, port, _ := net.SplitHostPort(server.Addr())
	with := func(trust *tls.Config) Config {
		c := patient(server.Addr())
		c.TLS, c.Password = trust, "p@ss:/word"
		return c
	}
	t.Run("the configured name", func(t *testing.T) { wantAllowed(t, open(t, with(ca.Trust("redis.test")))) })
	t.Run("a URL with an escaped password", func(t *testing.T) {
		c := patient("rediss://default:p%40ss%3A%2Fword@127.0.0.1:" + port + "/0")
		c.TLS = ca.Trust("redis.test")
		wantAllowed(t, open(t, c))
	})
	for name, c := range map[string]Config{
		"another name":                    with(ca.Trust("other.test")),
		"no name, and dialled by address": with(ca.Trust("")),
		"another authority":               with(other.Trust("redis.test")),
		"the system's authorities":        func() Config { c := patient("rediss://:p%40ss%3A%2Fword@" + server.Addr()); return c }(),
		"no TLS":                          with(nil),
	} {
		t.Run(name, func(t *testing.T) { wantBeforeSend(t, open(t, c), "word") })
	}
	t.Run("an expired certificate", func(t *testing.T) {
		l, err := tls.Listen("tcp", "127.0.0.1:0", expired(t, stale))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1)) // shakes hands
				_ = c.Close()
			}
		}()
		c := with(stale.Trust("redis.test"))
		c.Addresses = []string{l.Addr().String()}
		wantBeforeSend(t, open(t, c), "word")
	})
}

func expired(t *testing.T, a *redistest.Authority) *tls.Config {
	t.Helper()
	pair, err := a.Issue("redis.test", time.Now().Add(-time.Hour)).Load()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// wantBeforeSend evaluates, and expects that nothing was sent and that no
// secret is told.
func wantBeforeSend(t *testing.T, s *Store, secret string) {
	t.Helper()
	single, _ := anyPolicies(t)
	_, err := s.Decide(context.Background(), group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1}))
	if !errors.Is(err, stint.BeforeSend) {
		t.Errorf("got %v, want %s", err, stint.BeforeSend)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %v", err, err, s.Ping(context.Background())), secret) {
		t.Errorf("a secret is told: %v", err)
	}
}

// A primary, a replica and a Sentinel, all with TLS and a password, the
// Sentinel's another; certificates carry names while the Sentinel announces
// addresses (C39).
func TestASentinelNamesThePrimaryAndItsSuccessor(t *testing.T) {
	ca := redistest.NewAuthority(t)
	cert := ca.Issue("redis.test", time.Now().Add(time.Hour))
	account := []string{"--requirepass", "data-secret", "--masterauth", "data-secret", "--repl-diskless-sync-delay", "0"}
	primary := redistest.StartTLS(t, cert, account...)
	host, port, _ := net.SplitHostPort(primary.Addr())
	replica := redistest.StartTLS(t, cert, append(account, "--replicaof", host+" "+port)...)
	sentinel := redistest.StartSentinelTLS(t, cert, "orders", primary,
		"sentinel auth-pass NAME data-secret", "requirepass sentinel-secret")
	eventually(t, "the Sentinel knows the replica", func() bool {
		c := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr(), TLSConfig: ca.Trust("redis.test"), Password: "sentinel-secret", Protocol: 2, DisableIdentity: true})
		defer c.Close()
		known, err := c.Replicas(context.Background(), "orders").Result()
		return err == nil && len(known) == 1 && known[0]["master-link-status"] == "ok"
	})

	c := patient("")
	c.Addresses, c.Password, c.TLS = nil, "data-secret", ca.Trust("redis.test")
	c.CommandTimeout = 2 * time.Second
	c.Sentinel = &Sentinel{Master: "orders", Addresses: []string{"127.0.0.1:1", sentinel.Addr()}, Password: "sentinel-secret"}
	s := open(t, c)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 100, Window: 24 * time.Hour}}})
	take := func() error {
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
		g.Deadline = time.Now().Add(2 * time.Second)
		_, err := s.Decide(context.Background(), g)
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	behind := secured(t, replica.Addr(), ca.Trust("redis.test"), "data-secret")
	eventually(t, "the replica has the counter", func() bool { return len(counters(everything(t, behind))) == 1 })
	primary.Kill()
	eventually(t, "the successor decides", func() bool {
		err := take()
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Fatalf("a secret is told: %v", err)
		}
		return err == nil
	})
	d := decide(t, s, group(stint.Peek, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a")}))
	if d.Remaining != 98 {
		t.Errorf("%d remain of 100 after one before the failover and one after", d.Remaining)
	}

	t.Run("a wrong password for the Sentinel", func(t *testing.T) {
		bad := c
		bad.Sentinel = &Sentinel{Master: "orders", Addresses: []string{sentinel.Addr()}, Password: "guessed-word"}
		wantBeforeSend(t, open(t, bad), "guessed-word")
	})
	t.Run("a name that nobody watches", func(t *testing.T) {
		bad := c
		bad.Sentinel = &Sentinel{Master: "other", Addresses: []string{sentinel.Addr()}, Password: "sentinel-secret"}
		wantBeforeSend(t, open(t, bad), "secret")
	})
}

// A primary that was demoted says READONLY: nothing ran, its connection is
// given up, and the next evaluation asks the Sentinels again.
func TestADemotedPrimaryIsLeft(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	sentinel := redistest.StartSentinel(t, "orders", first)
	c := patient("")
	c.Addresses, c.Senders = nil, 1
	c.Sentinel = &Sentinel{Master: "orders", Addresses: []string{sentinel.Addr()}}
	s := open(t, c)
	wantAllowed(t, s)
	ctx := context.Background()
	host, port, _ := net.SplitHostPort(second.Addr())
	if err := inspect(t, first.Addr()).Do(ctx, "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	admin := inspect(t, sentinel.Addr())
	_ = admin.Do(ctx, "sentinel", "remove", "orders").Err()
	if err := admin.Do(ctx, "sentinel", "monitor", "orders", host, port, "1").Err(); err != nil {
		t.Fatal(err)
	}
	single, _ := anyPolicies(t)
	_, err := s.Decide(ctx, group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1}))
	if err != nil && !errors.Is(err, stint.NoMutation) {
		t.Errorf("got %v, want READONLY as %s", err, stint.NoMutation)
	}
	wantAllowed(t, s)
}

func TestURLsAreReadAndNeverRepeated(t *testing.T) {
	for text, want := range map[string]string{
		"http://u:sekret@h:1":        "begins with redis://",
		"redis://u:sekret@h:1/3":     "only 0 is supported",
		"redis://u:sekret@h:1/0?x=1": "a query",
		"redis://u:sek%ret@h:1":      "percent-encoded",
		"redis://u:sekret@:1":        "no host",
	} {
		_, err := Open(Config{Addresses: []string{text}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sek") {
			t.Errorf("%s: %v, want %q and no secret", text, err, want)
		}
	}
	for _, c := range []Config{
		{Addresses: []string{"u:sekret@h:1"}},
		{Sentinel: &Sentinel{Master: "m", Addresses: []string{"redis://u:sekret@h:1"}}},
		{Sentinel: &Sentinel{Master: "m", Addresses: []string{"u:sekret@h:1"}}},
	} {
		if _, err := Open(c); err == nil || strings.Contains(err.Error(), "sek") {
			t.Errorf("%v, want an error and no secret", err)
		}
	}
	if _, err := Open(Config{Addresses: []string{"redis://u:a@h:1"}, Password: "b"}); err == nil {
		t.Error("two accounts were accepted")
	}
	c, err := Config{Addresses: []string{"rediss://limiter:p%40ss@redis.test/0"}}.withDefaults()
	if err != nil || c.Addresses[0] != "redis.test:6379" || c.Username != "limiter" || c.Password != "p@ss" || c.TLS == nil {
		t.Errorf("%+v, %v", c.Addresses, err)
	}
	for _, bad := range []Config{
		{Addresses: []string{"a:1"}, Sentinel: &Sentinel{Master: "m", Addresses: []string{"b:1"}}},
		{Sentinel: &Sentinel{Addresses: []string{"b:1"}}},
		{Sentinel: &Sentinel{Master: "m"}},
		{Sentinel: &Sentinel{Master: "m", Addresses: []string{"b"}}},
		{Sentinel: &Sentinel{Master: "m", Addresses: []string{"b:1"}, Username: "u"}},
	} {
		if _, err := Open(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
