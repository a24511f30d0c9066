package redistest

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// longestDelay is the most that a [Weather] delays what passes.
const longestDelay = 150 * time.Millisecond

// latest is the longest after its connection was closed that a [Weather]
// delivers a command.
const latest = 800 * time.Millisecond

// Odds are how likely each fault is, in a thousand of what is read at once.
type Odds struct {
	DelayCommand int // by up to 150ms
	LoseCommand  int // close the connection instead of passing it on
	CutCommand   int // pass on the first half and close the connection
	LateCommand  int // close the client's connection, and deliver it up to 800ms later all the same
	DelayReply   int // by up to 150ms
	LoseReply    int // close the connection instead of passing it on
	CutReply     int // pass on the first half and close the connection
	HoldReply    int // pass on nothing any more; the connection stays open
	SpoilReply   int // bytes that are no reply instead, and close the connection
}

// Calm passes everything on.
var Calm = Odds{}

// Weather stands between clients and a server as a [Proxy] does, and meets
// whatever passes with faults at random. It is safe for concurrent use.
type Weather struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup
	ending   context.Context

	mu    sync.Mutex
	odds  Odds
	rng   *rand.Rand
	links map[*link]struct{}
	met   int
}

// StartWeather starts a weather, calm, in front of target. It ends with the test.
func StartWeather(t testing.TB, target string, seed uint64) *Weather {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Weather{
		listener: l, target: target, ending: ctx,
		rng: rand.New(rand.NewPCG(seed, 0x77656174686572)), links: map[*link]struct{}{},
	}
	w.running.Go(w.accept)
	t.Cleanup(func() {
		cancel()
		l.Close()
		w.cut(true)
		w.running.Wait()
	})
	return w
}

// Addr is where clients connect.
func (w *Weather) Addr() string { return w.listener.Addr().String() }

// Set changes the odds, for connections that are open too.
func (w *Weather) Set(o Odds) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.odds = o
}

// Met returns how many faults there were.
func (w *Weather) Met() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.met
}

// CutAll closes every connection of a client, as a network that goes away does.
func (w *Weather) CutAll() { w.cut(false) }

func (w *Weather) cut(spared bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		if spared || !l.spared.Load() {
			l.close()
		}
	}
}

func (w *Weather) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(w.ending, "tcp", w.target)
		if err != nil {
			client.Close()
			continue
		}
		l := &link{client: client, server: server}
		w.track(l)
		both := func() {
			w.forget(l)
			l.close()
		}
		w.running.Go(func() { defer both(); w.commands(l) })
		w.running.Go(func() { defer both(); w.replies(l) })
	}
}

// link is one connection. It is spared once it shows that servers talk to each
// other on it: their own troubles are not what is tested, and faults there
// would be losses of data that nobody planned.
type link struct {
	client, server net.Conn
	spared         atomic.Bool
}

// byServers are what only servers say: replicas, Sentinels, slots on the move.
var byServers = [][]byte{[]byte("replconf"), []byte("psync"), []byte("sentinel-"), []byte("restore-asking")}

func (w *Weather) look(l *link, command []byte) {
	if l.spared.Load() {
		return
	}
	lower := bytes.ToLower(command[:min(len(command), 200)])
	for _, words := range byServers {
		if bytes.Contains(lower, words) {
			l.spared.Store(true)
			return
		}
	}
}

func (l *link) close() {
	l.client.Close()
	l.server.Close()
}

func (w *Weather) track(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[l] = struct{}{}
	if w.ending.Err() != nil { // cut has been and gone
		l.close()
	}
}

func (w *Weather) forget(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.links, l)
}

// draw returns which of several faults happens, -1 for none, and a delay below
// longest.
func (w *Weather) draw(l *link, longest time.Duration, odds func(Odds) []int) (int, time.Duration) {
	if l.spared.Load() {
		return -1, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.rng.IntN(1000)
	for fault, o := range odds(w.odds) {
		if n -= o; n < 0 {
			w.met++
			return fault, time.Duration(w.rng.Int64N(int64(longest)))
		}
	}
	return -1, 0
}

// pause waits, and reports whether there is still something to wait for.
func (w *Weather) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.ending.Done():
		return false
	case <-t.C:
		return true
	}
}

func (w *Weather) commands(l *link) {
	command := make([]byte, 1<<16)
	for {
		n, err := l.client.Read(command)
		if err != nil {
			return
		}
		w.look(l, command[:n])
		fault, delay := w.draw(l, longestDelay, func(o Odds) []int {
			return []int{o.DelayCommand, o.LoseCommand, o.CutCommand, o.LateCommand}
		})
		switch fault {
		case 0:
			if !w.pause(delay) {
				return
			}
		case 1:
			return
		case 2:
			_, _ = l.server.Write(command[:n/2])
			return
		case 3:
			if late := bytes.Clone(command[:n]); bytes.HasPrefix(late, []byte("*")) {
				w.running.Go(func() { w.deliver(late) })
			}
			return
		}
		if _, err := l.server.Write(command[:n]); err != nil {
			return
		}
	}
}

// deliver sends a command on a connection of its own, late.
func (w *Weather) deliver(command []byte) {
	w.mu.Lock()
	delay := time.Duration(w.rng.Int64N(int64(latest)))
	w.mu.Unlock()
	if !w.pause(delay) {
		return
	}
	c, err := (&net.Dialer{}).DialContext(w.ending, "tcp", w.target)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(longestDelay))
	if _, err := c.Write(command); err == nil {
		_, _ = c.Read(make([]byte, 1<<16))
	}
}

func (w *Weather) replies(l *link) {
	reply := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(reply)
		if err != nil {
			return
		}
		fault, delay := w.draw(l, longestDelay, func(o Odds) []int {
			return []int{o.DelayReply, o.LoseReply, o.CutReply, o.HoldReply, o.SpoilReply}
		})
		switch fault {
		case 0:
			if !w.pause(delay) {
				return
			}
		case 1:
			return
		case 2:
			_, _ = l.client.Write(reply[:n/2])
			return
		case 3:
			_, _ = io.Copy(io.Discard, l.server) // until the client gives up
			return
		case 4:
			_, _ = io.WriteString(l.client, "?what is this\r\n")
			return
		}
		if _, err := l.client.Write(reply[:n]); err != nil {
			return
		}
	}
}
