package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
)

// phase is how far a command has come on its connection.
type phase int

const (
	// connecting: no connection yet, or one that is shaking hands.
	connecting phase = iota
	// writing: the connection is ready; the last byte has not been written.
	writing
	// written: every byte was handed over, and the reply is being waited for.
	written
	// broken: a write failed, so the last byte was never written.
	broken
)

// wire makes and observes the connection of one sender, which has one command
// under way at a time, so that a failure is placed before or after the last
// byte by what happened and not by what the error looks like.
type wire struct {
	locate  locate
	connect func(ctx context.Context, addr string) (net.Conn, error)

	mu    sync.Mutex
	phase phase
	conn  *observedConn // the newest; nil once it is closed
	ready bool          // the newest has shaken hands
}

func (w *wire) now() phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase
}

// begin starts a command on whatever connection there is.
func (w *wire) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = writing
}

// dial connects; from then until greeted the connection shakes hands. It has
// the form that the client library wants; where to connect is the wire's own.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w.mu.Lock()
	w.phase = connecting
	w.mu.Unlock()
	addr, err := w.locate(ctx)
	if err != nil {
		return nil, err
	}
	c, err := w.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	o := &observedConn{Conn: c, wire: w, addr: addr}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.ready = o, false
	return o, nil
}

// greeted ends the handshake: what is written from now on is the command.
func (w *wire) greeted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.ready = writing, true
}

// connected reports whether there is a connection that has shaken hands.
func (w *wire) connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn != nil && w.ready
}

// leave closes the connection unless it leads to addr.
func (w *wire) leave(addr string) {
	w.mu.Lock()
	c := w.conn
	w.mu.Unlock()
	if c != nil && c.addr != addr {
		_ = c.Close()
	}
}

// observedConn reports writes to its wire.
type observedConn struct {
	net.Conn
	wire *wire
	addr string
}

// Write counts a command as written whole as soon as any of it was, unless a
// later write fails: to be wrong on that side is only to say "unknown" too often.
func (c *observedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	switch {
	case c.wire.phase == connecting:
	case err != nil:
		c.wire.phase = broken
	default:
		c.wire.phase = written
	}
	return n, err
}

func (c *observedConn) Close() error {
	c.wire.mu.Lock()
	if c.wire.conn == c {
		c.wire.conn = nil
	}
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn lets the client see that the server has closed an idle
// connection before it writes to it.
func (c *observedConn) SyscallConn() (syscall.RawConn, error) {
	transport := c.Conn
	if secured, ok := transport.(*tls.Conn); ok {
		transport = secured.NetConn()
	}
	if s, ok := transport.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, syscall.EINVAL
}
