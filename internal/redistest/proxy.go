package redistest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A Fault is what a [Proxy] does with the next command that contains its
// marker.
type Fault int

// The faults.
const (
	// Pass does nothing.
	Pass Fault = iota
	// DropReply lets the command through, waits for the reply, and closes the
	// client's connection instead of handing it over.
	DropReply
	// HoldReply lets the command through and keeps the reply for ever; the
	// connection stays open.
	HoldReply
	// SpoilReply lets the command through and answers with bytes that are no
	// reply.
	SpoilReply
	// HoldCommand keeps the command until Release, and answers nothing; the
	// client's connection may be gone by then.
	HoldCommand
	// CutCommand passes on only the first half of the command and closes both
	// connections.
	CutCommand
	// Refuse answers with Reply instead of passing the command on.
	Refuse
)

// Proxy stands between a client and a server. It treats what it reads at once
// from the client as one command, which is how a client that flushes once a
// command behaves on loopback. It is safe for concurrent use.
type Proxy struct {
	t        testing.TB
	listener net.Listener
	target   string

	mu     sync.Mutex
	plan   []step
	held   []func()
	conns  map[net.Conn]struct{}
	closed bool

	// Seen counts the commands that a fault was applied to.
	Seen atomic.Int64
}

type step struct {
	fault  Fault
	marker []byte
	reply  string
}

// StartProxy starts a proxy in front of target, which ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{t: t, listener: l, target: target, conns: map[net.Conn]struct{}{}}
	go p.accept()
	t.Cleanup(p.Close)
	return p
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.CutAll()
}

// CutAll closes every connection, as a network that goes away does.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Next plans a fault for the next command that contains marker, such as
// "evalsha". Plans are used in order, each once.
func (p *Proxy) Next(f Fault, marker string) { p.add(step{fault: f, marker: []byte(marker)}) }

// RefuseNext answers the next command that contains marker with a reply in
// the wire's form, such as "-BUSY no\r\n".
func (p *Proxy) RefuseNext(marker, reply string) {
	p.add(step{fault: Refuse, marker: []byte(marker), reply: reply})
}

func (p *Proxy) add(s step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = append(p.plan, s)
}

// Release passes on every command that is being held, and waits until the
// server has answered each.
func (p *Proxy) Release() {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, send := range held {
		send()
	}
}

func (p *Proxy) next(command []byte) step {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plan) == 0 || !bytes.Contains(bytes.ToLower(command), p.plan[0].marker) {
		return step{}
	}
	s := p.plan[0]
	p.plan = p.plan[1:]
	if s.fault != Pass {
		p.Seen.Add(1)
	}
	return s
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.track(client, server) {
			return
		}
		go p.serve(client, server)
	}
}

func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
		}
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

// serve relays one connection. Requests are answered one at a time, so that a
// fault meets exactly the reply of its command.
func (p *Proxy) serve(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	command := make([]byte, 1<<20)
	reply := make([]byte, 1<<20)
	for {
		n, err := client.Read(command)
		if err != nil {
			return
		}
		s := p.next(command[:n])
		switch s.fault {
		case Refuse:
			if _, err := io.WriteString(client, s.reply); err != nil {
				return
			}
			continue
		case CutCommand:
			_, _ = server.Write(command[:n/2])
			return
		case HoldCommand:
			p.hold(bytes.Clone(command[:n]))
			_, _ = client.Read(command) // until the client gives up
			return
		}
		if _, err := server.Write(command[:n]); err != nil {
			return
		}
		m, err := server.Read(reply)
		if err != nil || s.fault == DropReply {
			return
		}
		switch s.fault {
		case HoldReply:
			_, _ = client.Read(command)
			return
		case SpoilReply:
			_, _ = io.WriteString(client, "?what is this\r\n")
			return
		}
		if _, err := client.Write(reply[:m]); err != nil {
			return
		}
	}
}

// hold keeps a command for Release, to be sent on a connection of its own: as
// a network does that delivers late what a client sent before it hung up.
func (p *Proxy) hold(command []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, func() {
		c, err := net.Dial("tcp", p.target)
		if err != nil {
			p.t.Errorf("release: %v", err)
			return
		}
		defer c.Close()
		if _, err := c.Write(command); err != nil {
			p.t.Errorf("release: %v", err)
		}
		_, _ = c.Read(make([]byte, 1<<16))
	})
}

// Drain forgets the faults that were planned and not met.
func (p *Proxy) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = nil
}
