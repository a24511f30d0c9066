package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// faultyWire is a store behind a proxy, the server behind it, and two fixed
// windows of 10 a day, one of them without deduplication. One sender, so that
// the order of commands is known.
type faultyWire struct {
	*testing.T
	server  *redistest.Server
	proxy   *redistest.Proxy
	store   *Store
	tracked *stint.Policy
	plain   *stint.Policy
}

func newFaultyWire(t *testing.T, timeout time.Duration) *faultyWire {
	t.Helper()
	w := &faultyWire{T: t, server: redistest.Start(t)}
	w.proxy = redistest.StartProxy(t, w.server.Addr())
	c := patient(w.proxy.Addr())
	c.CommandTimeout, c.Senders = timeout, 1
	w.store = open(t, c)
	limits := []stint.Limit{stint.FixedWindow{Limit: 10, Window: 24 * time.Hour}}
	w.tracked = policy(t, stint.Policy{ID: "tracked", Limits: limits})
	w.plain = policy(t, stint.Policy{ID: "plain", Limits: limits, Dedup: stint.Dedup{Off: true}})
	return w
}

// take spends 1 within the given time.
func (w *faultyWire) take(p *stint.Policy, within time.Duration) error {
	g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
	g.Deadline = time.Now().Add(within)
	_, err := w.store.Decide(context.Background(), g)
	return err
}

// warm makes the connection and loads the script, spending 1.
func (w *faultyWire) warm(p *stint.Policy) {
	w.Helper()
	if err := w.take(p, 20*time.Second); err != nil {
		w.Fatal(err)
	}
}

// spent reads what was spent past the proxy, from the server.
func (w *faultyWire) spent(p *stint.Policy) int64 {
	w.Helper()
	c := patient(w.server.Addr())
	d := decide(w, open(w, c), group(stint.Peek, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a")}))
	return 10 - d.Remaining
}

func (w *faultyWire) want(err error, reason stint.Reason) {
	w.Helper()
	if got := stint.ReasonOf(err); got != reason {
		w.Fatalf("got %q (%v), want %q", got, err, reason)
	}
}

func (w *faultyWire) wantSpent(p *stint.Policy, n int64) {
	w.Helper()
	if got := w.spent(p); got != n {
		w.Fatalf("the server holds %d spent, want %d", got, n)
	}
}

// A reply that was lost is asked for again, and what was spent is not spent
// again (C33).
func TestALostReplyIsResolvedBySendingAgain(t *testing.T) {
	for name, fault := range map[string]redistest.Fault{
		"connection closed": redistest.DropReply,
		"no reply":          redistest.HoldReply,
		"malformed reply":   redistest.SpoilReply,
		"command cut":       redistest.CutCommand,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFaultyWire(t, time.Second)
			w.warm(w.tracked)
			w.proxy.Next(fault, "evalsha")
			w.want(w.take(w.tracked, 20*time.Second), "")
			w.wantSpent(w.tracked, 2)
			if w.proxy.Seen.Load() != 1 {
				t.Fatal("the fault was never met")
			}
		})
	}
}

// Without deduplication a resend could spend twice, so there is none.
func TestALostReplyWithoutDedupIsIndeterminate(t *testing.T) {
	w := newFaultyWire(t, time.Second)
	w.warm(w.plain)
	w.proxy.Next(redistest.DropReply, "evalsha")
	w.want(w.take(w.plain, 20*time.Second), stint.OutcomeUnknown)
	w.wantSpent(w.plain, 2)
	w.want(w.take(w.plain, 20*time.Second), "")
	w.wantSpent(w.plain, 3)
}

// The class of an evaluation is the worst of its attempts.
func TestAfterALostReplyOnlyADecisionResolves(t *testing.T) {
	const noscript = "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	for name, second := range map[string]func(*redistest.Proxy){
		"lost again":    func(p *redistest.Proxy) { p.Next(redistest.DropReply, "evalsha") },
		"refused":       func(p *redistest.Proxy) { p.RefuseNext("evalsha", "-BUSY Redis is busy\r\n") },
		"not permitted": func(p *redistest.Proxy) { p.RefuseNext("evalsha", "-NOPERM no\r\n") },
		"no connection": func(p *redistest.Proxy) {
			p.RefuseNext("hello", "-ERR max number of clients reached\r\n")
			p.RefuseNext("hello", "-ERR max number of clients reached\r\n")
		},
		"no script, and it cannot be loaded": func(p *redistest.Proxy) {
			p.RefuseNext("evalsha", noscript)
			p.RefuseNext("script", "-NOPERM no\r\n")
		},
		"no script, twice": func(p *redistest.Proxy) {
			p.RefuseNext("evalsha", noscript)
			p.RefuseNext("evalsha", noscript)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFaultyWire(t, time.Second)
			w.warm(w.tracked)
			w.proxy.Next(redistest.DropReply, "evalsha")
			second(w.proxy)
			w.want(w.take(w.tracked, 20*time.Second), stint.OutcomeUnknown)
			w.wantSpent(w.tracked, 2)
			w.want(w.take(w.tracked, 20*time.Second), "")
			w.wantSpent(w.tracked, 3)
		})
	}
}

func TestAfterALostReplyAServerThatIsGoneLeavesItUnknown(t *testing.T) {
	w := newFaultyWire(t, time.Second)
	w.warm(w.tracked)
	w.proxy.Next(redistest.HoldReply, "evalsha")
	done := make(chan error)
	go func() { done <- w.take(w.tracked, 20*time.Second) }()
	eventually(t, "the reply is being held", func() bool { return w.proxy.Seen.Load() > 0 })
	w.server.Kill()
	w.want(<-done, stint.OutcomeUnknown)
}

// What arrives late was either answered before or is behind its fence.
func TestADelayedAttemptSpendsNothing(t *testing.T) {
	t.Run("after its resend", func(t *testing.T) {
		t.Parallel()
		w := newFaultyWire(t, 800*time.Millisecond)
		w.warm(w.tracked)
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.want(w.take(w.tracked, 20*time.Second), "")
		w.wantSpent(w.tracked, 2)
		w.proxy.Release()
		w.wantSpent(w.tracked, 2)
	})
	t.Run("after a newer batch of its sender", func(t *testing.T) {
		t.Parallel()
		w := newFaultyWire(t, 800*time.Millisecond)
		w.warm(w.tracked)
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.want(w.take(w.tracked, 20*time.Second), stint.OutcomeUnknown)
		w.want(w.take(w.tracked, 20*time.Second), "")
		w.proxy.Release()
		w.wantSpent(w.tracked, 2)
	})
	t.Run("after a newer batch that was denied", func(t *testing.T) {
		t.Parallel()
		w := newFaultyWire(t, 800*time.Millisecond)
		w.warm(w.tracked)
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.want(w.take(w.tracked, 20*time.Second), stint.OutcomeUnknown)
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: w.tracked, Subject: subject("a"), Cost: 10})
		if d := decide(t, w.store, g); d.Outcome != stint.Denied {
			t.Fatalf("got %v, want denied", d.Outcome)
		}
		w.proxy.Release()
		w.wantSpent(w.tracked, 1)
	})
	t.Run("after a newer batch of its slot, others having come between", func(t *testing.T) {
		t.Parallel()
		w := newFaultyWire(t, 800*time.Millisecond)
		w.store.topology.(standalone).senders[0].clustered = true
		w.warm(w.tracked)
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.proxy.Next(redistest.HoldCommand, "evalsha")
		w.want(w.take(w.tracked, 20*time.Second), stint.OutcomeUnknown)
		elsewhere := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: w.tracked, Subject: subject("b"), Cost: 1})
		decide(t, w.store, elsewhere)
		refused := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: w.tracked, Subject: subject("a"), Cost: 10})
		if d := decide(t, w.store, refused); d.Outcome != stint.Denied {
			t.Fatalf("got %v, want denied", d.Outcome)
		}
		w.proxy.Release()
		w.wantSpent(w.tracked, 1)
	})
	for _, kind := range []string{"tracked", "plain"} {
		t.Run("after its deadline, "+kind, func(t *testing.T) {
			t.Parallel()
			w := newFaultyWire(t, time.Second)
			p := map[string]*stint.Policy{"tracked": w.tracked, "plain": w.plain}[kind]
			w.warm(p)
			w.proxy.Next(redistest.HoldCommand, "evalsha")
			w.want(w.take(p, 50*time.Millisecond), stint.OutcomeUnknown)
			w.proxy.Release()
			w.wantSpent(p, 1)
		})
	}
}

// Every reply that a server makes before it starts a script proves that
// nothing ran; any reply from inside one proves nothing, whatever its prefix.
func TestAReplyIsClassifiedByItsOriginThenItsPrefix(t *testing.T) {
	w := newFaultyWire(t, time.Second)
	w.warm(w.tracked)
	for _, first := range beforeScript {
		if first == "NOSCRIPT" {
			continue // leads to loading the script: see TestNoScript
		}
		w.proxy.RefuseNext("evalsha", "-"+first+" so it is\r\n")
		w.want(w.take(w.tracked, 20*time.Second), stint.NoMutation)
		w.proxy.RefuseNext("evalsha", "-"+first+" so it is script: 0123, on @user_script:1.\r\n")
		w.want(w.take(w.tracked, 20*time.Second), stint.OutcomeUnknown)
	}
	for _, reply := range []string{
		"-ERR user_script:1: no, script: 0123\r\n", "-ERR Script killed by user\r\n", "-WRONGTYPE no\r\n",
		"$-1\r\n", ":1\r\n", "$2\r\nok\r\n", "*0\r\n",
	} {
		w.proxy.RefuseNext("evalsha", reply)
		w.proxy.RefuseNext("evalsha", reply)
		w.want(w.take(w.tracked, 20*time.Second), stint.OutcomeUnknown)
		w.proxy.Drain()
	}
	w.wantSpent(w.tracked, 1)
}

func TestWithoutAConnectionNothingWasSent(t *testing.T) {
	refused := func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	secret := "a-secret-nobody-prints"
	for name, c := range map[string]func(t *testing.T) Config{
		"dial refused": func(t *testing.T) Config { return patient(refused(t)) },
		"wrong password": func(t *testing.T) Config {
			c := patient(redistest.Start(t, "--requirepass", "right").Addr())
			c.Password = secret
			return c
		},
		"no password": func(t *testing.T) Config {
			return patient(redistest.Start(t, "--requirepass", "right").Addr())
		},
		"too many clients": func(t *testing.T) Config {
			s := redistest.Start(t, "--maxclients", "1")
			other, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { other.Close() })
			return patient(s.Addr())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c(t))
			p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Hour}}})
			for range 3 {
				_, err := s.Decide(context.Background(), group(stint.Take, stint.EvaluationID{}, epoch,
					stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
				if !errors.Is(err, stint.BeforeSend) || !errors.Is(err, stint.Unavailable) {
					t.Fatalf("got %v, want %s", err, stint.BeforeSend)
				}
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
					t.Fatalf("the error tells the password: %v", err)
				}
			}
			if err := s.Ping(context.Background()); err == nil {
				t.Error("Ping found the server usable")
			}
		})
	}
}

// A server that hangs costs each caller its deadline and no more, and is used
// again when it goes on.
func TestAHangingServerIsAnsweredForInTimeAndUsedAgain(t *testing.T) {
	w := newFaultyWire(t, 100*time.Millisecond)
	w.warm(w.tracked)
	w.server.Pause()
	const callers = 20
	errs := make(chan error)
	for range callers {
		go func() { errs <- w.take(w.tracked, 300*time.Millisecond) }()
	}
	for range callers {
		err := <-errs
		if !errors.Is(err, stint.OutcomeUnknown) && !errors.Is(err, stint.BeforeSend) {
			t.Errorf("got %v, want OUTCOME_UNKNOWN or UNAVAILABLE_BEFORE_SEND", err)
		}
	}
	w.server.Resume()
	eventually(t, "the store recovers", func() bool { return w.take(w.tracked, time.Second) == nil })
	if n := w.spent(w.tracked); n < 2 || n > 2+callers {
		t.Errorf("%d spent", n)
	}
}

func TestAKilledServerIsUsedAgainWhenItIsBack(t *testing.T) {
	w := newFaultyWire(t, time.Second)
	w.warm(w.tracked)
	w.server.Kill()
	if err := w.take(w.tracked, time.Second); !errors.Is(err, stint.BeforeSend) && !errors.Is(err, stint.OutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	w.server.Restart()
	eventually(t, "the store recovers", func() bool { return w.take(w.tracked, time.Second) == nil })
	w.wantSpent(w.tracked, 1)
}
