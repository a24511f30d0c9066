package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// stuck is a store with one sender that waits for a server that hangs.
func stuck(t *testing.T, queue int) (*faultyWire, chan error) {
	t.Helper()
	w := newFaultyWire(t, time.Second)
	c := patient(w.proxy.Addr())
	c.Senders, c.Queue = 1, queue
	w.store = open(t, c)
	w.warm(w.plain)
	w.proxy.Next(redistest.HoldCommand, "evalsha")
	first := make(chan error, 1)
	go func() { first <- w.take(w.plain, 20*time.Second) }()
	eventually(t, "the sender waits for the server", func() bool { return w.proxy.Seen.Load() > 0 })
	return w, first
}

func TestWhatWaitsTooLongIsKnownToBeUnsent(t *testing.T) {
	w, _ := stuck(t, 10)
	w.want(w.take(w.plain, 50*time.Millisecond), stint.BeforeSend)
	w.want(w.take(w.plain, 0), stint.AdmissionRejected)
}

func TestACallerThatHangsUpWhileWaitingIsKnownToBeUnsent(t *testing.T) {
	w, _ := stuck(t, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := w.store.Decide(ctx, group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: w.plain, Subject: subject("a"), Cost: 1}))
		done <- err
	}()
	eventually(t, "it waits", func() bool { return w.store.topology.(standalone).lane.queue.length() == 1 })
	cancel()
	err := <-done
	w.want(err, stint.BeforeSend)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not say that its caller cancelled", err)
	}
}

func TestAFullQueueRefuses(t *testing.T) {
	w, _ := stuck(t, 1)
	waiting := make(chan error)
	go func() { waiting <- w.take(w.plain, 20*time.Second) }()
	eventually(t, "one waits", func() bool { return w.store.topology.(standalone).lane.queue.length() == 1 })
	w.want(w.take(w.plain, 20*time.Second), stint.AdmissionRejected)
	w.proxy.CutAll()
	w.want(<-waiting, "")
}

func TestCloseAnswersWhatWaitsAndLeavesNothingRunning(t *testing.T) {
	server := redistest.Start(t)
	leaks := goleak.IgnoreCurrent()
	single, _ := anyPolicies(t)
	s, err := Open(patient(server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1})
	for range 10 {
		decide(t, s, g)
	}
	if err := s.Ping(context.Background()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.Decide(context.Background(), g); stint.ReasonOf(err) != stint.AdmissionRejected {
		t.Errorf("after Close: %v", err)
	}
	goleak.VerifyNone(t, leaks)
}

func TestConfigNamesEveryProblem(t *testing.T) {
	_, err := Open(Config{
		Addresses: []string{"nowhere"}, Username: "u", Prefix: "a:{b}", CommandTimeout: -1, Clock: 9,
		MaximumClockSkew: time.Microsecond, Senders: -1, Queue: -1,
	})
	for _, field := range []string{"Addresses[0]", "Password", "Prefix", "CommandTimeout", "Clock", "MaximumClockSkew", "Senders", "Queue"} {
		if err == nil || !contains(err.Error(), "redisstore: "+field+":") {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
	for _, addresses := range [][]string{nil, {"a:1", "b:2"}} {
		if _, err := Open(Config{Addresses: addresses}); err == nil {
			t.Errorf("%q was accepted", addresses)
		}
	}
}
