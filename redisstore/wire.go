package redisstore

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
)

// phase is how far a command has come on its connection.
type phase int32

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

// wire observes the connection of one sender, which has one command under way
// at a time, so that a failure is placed before or after the last byte by what
// happened and not by what the error looks like.
type wire struct{ phase atomic.Int32 }

func (w *wire) set(p phase) { w.phase.Store(int32(p)) }
func (w *wire) now() phase  { return phase(w.phase.Load()) }

// begin starts a command on whatever connection there is.
func (w *wire) begin() { w.set(writing) }

// dial connects; from then until ready the connection shakes hands.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.set(connecting)
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &observedConn{Conn: c, wire: w}, nil
}

// ready ends the handshake: what is written from now on is the command.
func (w *wire) ready() { w.set(writing) }

// observedConn reports writes to its wire.
type observedConn struct {
	net.Conn
	wire *wire
}

// Write counts a command as written whole as soon as any of it was, unless a
// later write fails: to be wrong on that side is only to say "unknown" too often.
func (c *observedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	switch {
	case c.wire.now() == connecting:
	case err != nil:
		c.wire.set(broken)
	default:
		c.wire.set(written)
	}
	return n, err
}

// SyscallConn lets the client see that the server has closed an idle
// connection before it writes to it.
func (c *observedConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, syscall.EINVAL
}
