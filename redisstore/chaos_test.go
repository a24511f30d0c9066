//go:build chaos

package redisstore

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
)

var (
	chaosFor  = flag.Duration("chaos.for", 0, "how long to break each arena; 0: one short run")
	chaosSeed = flag.Uint64("chaos.seed", 0, "the seed of the first run; 0: a new one")
)

// The lengths of a run. Many runs of a minute tell more than one of an hour:
// each starts with other servers, and its seed is soon tried again.
const (
	shortRun = 16 * time.Second
	longRun  = 60 * time.Second
)

// TestChaos breaks every arena while client processes spend, and proves from
// what they wrote down that nothing was promised that was not kept.
func TestChaos(t *testing.T) {
	for _, arena := range arenas {
		t.Run(arena.name, func(t *testing.T) {
			t.Parallel()
			seed := *chaosSeed
			if seed == 0 {
				seed = rand.Uint64N(1 << 32)
			}
			length := shortRun
			if *chaosFor > 0 {
				length = min(*chaosFor, longRun)
			}
			for begun := time.Now(); ; seed++ {
				breakOnce(t, arena, seed, length)
				if t.Failed() || time.Since(begun) >= *chaosFor {
					return
				}
			}
		})
	}
}

// breakOnce is one run, which anyone can try again by its seed.
func breakOnce(t *testing.T, arena arena, seed uint64, length time.Duration) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		t.Logf("seed %d: go test -tags chaos -run 'TestChaos$/%s' -chaos.seed %d -chaos.for %v", seed, arena.name, seed, length)
		r := &chaosRun{
			T: t, system: arena.start(t, seed), seed: seed, length: length, pairs: 3, wire: drizzle,
			load: chaos.Program{Callers: 3, Pause: 25 * time.Millisecond, Repeat: 3 * time.Second, Far: 10},
		}
		report := r.carryOut(chaos.Schedule(seed, length))
		t.Logf("%v", report)
		if len(report.Violations) > 0 {
			t.Errorf("%d promises broken: %q", len(report.Violations), report.Broken())
		}
		if report.Compared == 0 || report.Ordered == 0 || report.Repeated == 0 {
			t.Error("the run proved nothing")
		}
	})
}
