//go:build chaos

package redisstore

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

// chaosRun is one run of the suite on one system.
type chaosRun struct {
	*testing.T
	system   *rig
	seed     uint64
	length   time.Duration
	pairs    int            // of client processes: one on the server's clock, one on its own
	load     chaos.Program  // what is the same for all of them
	wire     redistest.Odds // the weather at the start
	mutation string

	dir      string
	start    time.Time
	recorder *chaos.Recorder
	clients  []*clientProcess
	started  int
}

// realms are the two clocks, each with keys of its own.
var realms = []struct{ clock, prefix string }{{chaos.ServerClock, "chaos-s"}, {chaos.CallerClock, "chaos-c"}}

// carryOut runs clients and nemesis, compares with the servers at the end, and
// checks what everyone wrote down.
func (r *chaosRun) carryOut(schedule []chaos.Step) *chaos.Report {
	r.dir = filepath.Join(r.ArtifactDir(), fmt.Sprint("seed-", r.seed))
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		r.Fatal(err)
	}
	f, err := os.Create(filepath.Join(r.dir, "suite.jsonl"))
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	r.recorder = chaos.NewRecorder(f)
	r.start = time.Now().Add(200 * time.Millisecond)
	r.system.blow(r.wire)
	for range r.pairs * len(realms) {
		r.startClient(r.started)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	audited := make(chan error, len(realms))
	for realm := range realms {
		p := r.program(realm)
		go func() { audited <- r.audit(ctx, &p) }()
	}
	if r.system.replicas != nil {
		stop := r.system.replicas.watch(r.recorder)
		defer stop()
	}
	n := &nemesis{T: r.T, system: r.system, recorder: r.recorder, crash: r.crash}
	for _, step := range schedule {
		linger(time.Until(r.start.Add(step.Begin)))
		n.do(step)
	}
	for _, c := range r.clients {
		c.wait(r.T)
	}
	for range realms {
		if err := <-audited; err != nil {
			r.Fatal(err)
		}
	}
	if r.system.replicas != nil {
		r.system.replicas.settle(r.T) // so that every loss has an end
	}
	if err := r.recorder.Err(); err != nil {
		r.Fatal(err)
	}
	return r.check()
}

// startClient starts a client process in one of the realms.
func (r *chaosRun) startClient(realm int) {
	r.started++
	r.clients = append(r.clients, startClient(r.T, r.dir, orders{
		Program: r.program(realm), Reach: r.system.clients, Mutation: r.mutation,
	}))
}

// program is what a client process of a realm does.
func (r *chaosRun) program(realm int) chaos.Program {
	p, which := r.load, realms[realm%len(realms)]
	p.Seed, p.Process, p.Clock, p.Prefix = r.seed, r.started, which.clock, which.prefix
	p.Start, p.Until = r.start.UnixMicro(), r.start.Add(r.length).UnixMicro()
	return p
}

// crash kills a client process and starts another in its place.
func (r *chaosRun) crash(dice uint64) {
	place := int(dice % uint64(len(r.clients)))
	r.clients[place].kill()
	r.startClient(place)
	last := len(r.clients) - 1
	r.clients[place], r.clients = r.clients[last], r.clients[:last]
}

// audit reads every counter of a realm when nothing is asked of it any more.
func (r *chaosRun) audit(ctx context.Context, p *chaos.Program) error {
	s, err := Open(r.system.direct.config(*p))
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := stint.New(s, chaos.Policies())
	if err != nil {
		return err
	}
	for _, c := range p.Counters() {
		linger(time.Until(r.start.Add(c.Settled)))
		if err := r.auditOne(ctx, l, p.Prefix, c); err != nil {
			return err
		}
	}
	return nil
}

// auditOne asks until the server answers: it may be the nemesis's turn.
func (r *chaosRun) auditOne(ctx context.Context, l *stint.Limiter, prefix string, c chaos.Counter) error {
	a := chaos.Audit{Counter: chaos.Key(prefix, c.Subject, l.Policy(c.Policy)), Policy: c.Policy}
	var d stint.Decision
	var err error
	for range 100 {
		a.Called = time.Now().UnixMicro()
		d, err = l.Peek(ctx, stint.Request{Policy: c.Policy, Subject: c.Subject})
		a.Returned = time.Now().UnixMicro()
		if err == nil {
			a.Remaining = d.Remaining
			var ttl string
			if ttl, err = r.system.ttl(a.Counter); err == nil {
				if a.TTL, err = strconv.ParseInt(ttl, 10, 64); err == nil {
					r.recorder.Audit(a)
					return nil
				}
			}
		}
		linger(100 * time.Millisecond)
	}
	return fmt.Errorf("%s cannot be read: %w", a.Counter, err)
}

func (r *chaosRun) check() *chaos.Report {
	files, err := filepath.Glob(filepath.Join(r.dir, "*.jsonl"))
	if err != nil {
		r.Fatal(err)
	}
	policies, err := chaos.Frozen()
	if err != nil {
		r.Fatal(err)
	}
	h := readHistory(r.T, files...)
	since := func(at int64) time.Duration { return time.UnixMicro(at).Sub(r.start).Round(time.Millisecond) }
	for _, l := range h.Losses {
		r.Logf("data was lost between %v and %v: %s", since(l.From), since(l.To), l.What)
	}
	report := chaos.Check(h, policies)
	for _, n := range r.system.nodes {
		report.Met += n.weather.Met()
	}
	return report
}

// forget removes the histories of a run that nobody needs to look at. Those
// of the others are kept if the tests run with -artifacts.
func (r *chaosRun) forget() {
	if err := os.RemoveAll(r.dir); err != nil {
		r.Fatal(err)
	}
}

func readHistory(t testing.TB, paths ...string) *chaos.History {
	t.Helper()
	var sources []io.Reader
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sources = append(sources, f)
	}
	h, err := chaos.Read(sources...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
