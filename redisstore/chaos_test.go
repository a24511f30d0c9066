//go:build chaos

package redisstore

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

var (
	chaosFor    = flag.Duration("chaos.for", 0, "how long to break each kind of servers; 0: one short run")
	chaosSeed   = flag.Uint64("chaos.seed", 0, "the seed of the first run; 0: a new one")
	chaosRecord = flag.Bool("chaos.record", false, "rewrite docs/evidence.md, if nothing failed")
)

// The lengths of a run. Many runs of a minute tell more than one of an hour:
// each starts with other servers, and its seed is soon tried again.
const (
	shortRun = 16 * time.Second
	longRun  = 60 * time.Second
)

// mostRuns bounds the short form: a run in which so much data was lost that no
// sum could be compared is followed by another.
const mostRuns = 3

// evidencePage is what -chaos.record rewrites.
const evidencePage = "../docs/evidence.md"

// TestChaos breaks every kind of servers while client processes spend, and
// proves from what they wrote down that nothing was promised that was not kept.
func TestChaos(t *testing.T) {
	list := make([]chaos.Evidence, len(arenas))
	t.Run("on", func(t *testing.T) {
		for i, arena := range arenas {
			t.Run(arena.name, func(t *testing.T) {
				t.Parallel()
				list[i] = arena.breakFor(t, *chaosFor)
			})
		}
	})
	if !*chaosRecord || t.Failed() {
		return
	}
	page, err := os.ReadFile(evidencePage)
	if err != nil {
		t.Fatal(err)
	}
	text, err := chaos.Rewrite(string(page), serverVersion(t), time.Now(), list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(evidencePage, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// breakFor makes runs until the time is over or one fails.
func (a *arena) breakFor(t *testing.T, long time.Duration) chaos.Evidence {
	t.Helper()
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	length := shortRun
	if long > 0 {
		length = min(long, longRun)
	}
	e := chaos.Evidence{Kind: a.name, Seed: seed}
	for ; !t.Failed() && (e.Elapsed < long || !e.Total.Proved() && e.Runs < mostRuns); seed++ {
		if report := a.breakOnce(t, seed, length); report != nil {
			e.Add(report, length)
		}
	}
	if !t.Failed() && !e.Total.Proved() {
		t.Errorf("%d runs proved nothing", e.Runs)
	}
	return e
}

// breakOnce is one run, which anyone can try again by its seed.
func (a *arena) breakOnce(t *testing.T, seed uint64, length time.Duration) (report *chaos.Report) {
	t.Helper()
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		t.Logf("again: go test -tags chaos -run 'TestChaos$/on/%s' -chaos.seed %d -chaos.for %v ./redisstore", a.name, seed, length)
		system := a.start(t, seed)
		r := &chaosRun{
			T: t, system: system, seed: seed, length: length, pairs: 3, wire: drizzle,
			load: chaos.Program{Callers: 3, Pause: 25 * time.Millisecond, Repeat: 2 * time.Second, Far: 10},
		}
		report = r.carryOut(chaos.Schedule(seed, length, system.also...))
		t.Logf("%v", report)
		if len(report.Violations) > 0 {
			t.Errorf("%d promises broken: %q", len(report.Violations), report.Broken())
		}
		if !t.Failed() {
			r.forget()
		}
	})
	return report
}

// serverVersion asks the servers of this machine.
func serverVersion(t *testing.T) string {
	t.Helper()
	about, err := redistest.Start(t).Do("info", "server")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(about, "redis_version:")
	version, _, _ = strings.Cut(version, "\r")
	return version
}
