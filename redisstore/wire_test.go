package redisstore

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stintlimit/stint/internal/redistest"
)

// A dial that was given up may end after the next one: both connections are
// known, and both are left when the server has moved.
func TestEveryConnectionToAnotherServerIsLeft(t *testing.T) {
	w := newWire(at("old:1"), func(context.Context, string) (net.Conn, error) {
		c, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		go func() { _, _ = far.Read(make([]byte, 64)) }()
		return c, nil
	})
	var conns []net.Conn
	for range 2 {
		c, err := w.dial(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	if _, err := conns[0].Write([]byte("hello")); err != nil { // the older one shakes hands
		t.Fatal(err)
	}
	w.greeted()
	if !w.connected() {
		t.Error("the connection that shook hands is not known")
	}
	w.leave("old:1")
	if len(w.open) != 2 {
		t.Errorf("%d connections to where the server is, want 2", len(w.open))
	}
	w.leave("new:1")
	if len(w.open) != 0 || w.connected() {
		t.Errorf("%d connections are left to where the server was", len(w.open))
	}
	for _, c := range conns {
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("a connection is still open")
		}
	}
}

func TestPingsAtTheSameTimeDoNotFailEachOther(t *testing.T) {
	s := open(t, patient(redistest.Start(t).Addr()))
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for range 10 {
				if err := s.Ping(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}
