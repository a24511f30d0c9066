package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
)

// phase is how far a command has come.
type phase int

const (
	// writing: the last byte has not been written; perhaps there is no
	// connection yet, or one that is shaking hands.
	writing phase = iota
	// written: every byte was handed over, and the reply is being waited for.
	written
	// broken: a write failed, so the last byte was never written.
	broken
)

// wire makes and observes the connections of one sender, which has one command
// under way at a time, so that a failure is placed before or after the last
// byte by what happened and not by what the error looks like. A dial that was
// given up may still end, so there may be more than one connection.
type wire struct {
	locate  locate
	connect func(ctx context.Context, addr string) (net.Conn, error)

	mu      sync.Mutex
	phase   phase
	open    map[*observedConn]bool // and whether it has shaken hands
	shaking *observedConn          // the one that does, or did last
}

func newWire(where locate, connect func(context.Context, string) (net.Conn, error)) *wire {
	return &wire{locate: where, connect: connect, open: map[*observedConn]bool{}}
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

// dial connects. It has the form that the client library wants; where to
// connect is the wire's own.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
	w.open[o] = false
	return o, nil
}

// greeted ends the handshake of the connection that was written to last: what
// is written to it from now on is commands.
func (w *wire) greeted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := w.open[w.shaking]; open {
		w.open[w.shaking] = true
	}
}

// connected reports whether there is a connection that has shaken hands.
func (w *wire) connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ready := range w.open {
		if ready {
			return true
		}
	}
	return false
}

// leave closes every connection that does not lead to addr.
func (w *wire) leave(addr string) {
	w.mu.Lock()
	var others []*observedConn
	for c := range w.open {
		if c.addr != addr {
			others = append(others, c)
		}
	}
	w.mu.Unlock()
	for _, c := range others {
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
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	ready, open := w.open[c]
	switch {
	case open && !ready:
		w.shaking = c
	case err != nil:
		w.phase = broken
	default:
		w.phase = written
	}
	return n, err
}

func (c *observedConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.open, c)
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
