//go:build chaos

package redisstore

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
)

// replicas watches which servers are primaries. It notices a replica that
// takes over, and writes it down as a loss of data: from when it was last seen
// as a replica until nobody decides any more in whose place it came. What was
// not yet replicated, and what the old one decides until it learns, is lost.
type replicas struct {
	nodes  []victim
	parts  int                     // how many primaries there are when all is well
	rejoin func(n int)             // makes a server that started again one of them
	hurry  func(replica int) error // asks for a takeover that nothing has forced

	mu       sync.Mutex
	recorder *chaos.Recorder
	seen     []sighting
	dead     []bool
	open     []int64 // since when each takeover that is not over may have been, epoch µs
	newest   int64   // when the last of them was noticed, epoch µs
}

// sighting is the last that was seen of a server.
type sighting struct {
	asked   int64 // epoch µs
	role    string
	healthy bool // of a replica: it follows; of a primary: it decides
}

// lookEvery is how often each server is looked at.
const lookEvery = 30 * time.Millisecond

// patience bounds how long servers may take to be well again.
const settlePatience = 40 * time.Second

// watch looks at the servers until the function it returns is called.
func (r *replicas) watch(recorder *chaos.Recorder) (stop func()) {
	r.recorder = recorder
	r.seen, r.dead = make([]sighting, len(r.nodes)), make([]bool, len(r.nodes))
	ending := make(chan struct{})
	var looking sync.WaitGroup
	for n := range r.nodes {
		looking.Go(func() {
			for {
				select {
				case <-ending:
					return
				case <-time.After(lookEvery):
					r.look(n)
				}
			}
		})
	}
	return func() {
		close(ending)
		looking.Wait()
	}
}

func (r *replicas) look(n int) {
	asked := time.Now().UnixMicro()
	about, err := r.nodes[n].server.Do("info", "everything")
	if err != nil {
		return
	}
	s := sighting{asked: asked, role: "slave", healthy: strings.Contains(about, "master_link_status:up")}
	if strings.Contains(about, "role:master") {
		s.role = "master"
		s.healthy = !strings.Contains(about, "cluster_enabled:1") || r.decides(n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[n].role == "slave" && s.role == "master" {
		r.open = append(r.open, r.seen[n].asked)
		r.newest = time.Now().UnixMicro()
	}
	r.seen[n] = s
	if len(r.open) > 0 && r.uncontested() {
		for _, from := range r.open {
			r.recorder.Loss(chaos.Loss{What: "a replica took over", From: from, To: time.Now().UnixMicro()})
		}
		r.open = nil
	}
}

func (r *replicas) decides(n int) bool {
	state, err := r.nodes[n].server.Do("cluster", "info")
	return err == nil && strings.Contains(state, "cluster_state:ok")
}

// uncontested reports whether every server has been looked at since the newest
// takeover, and no more of them decide than should. The caller holds mu.
func (r *replicas) uncontested() bool {
	primaries := 0
	for n, s := range r.seen {
		switch {
		case r.dead[n]:
		case s.asked <= r.newest:
			return false
		case s.role == "master":
			primaries++
		}
	}
	return primaries == r.parts
}

// primaries waits until some are seen, and lists them.
func (r *replicas) primaries(t *testing.T) (list []int) {
	t.Helper()
	r.await(t, "there is a primary", func() bool {
		list = r.seenPrimaries()
		return len(list) > 0
	})
	return list
}

// seenPrimaries lists the servers that were last seen as such. The caller
// holds mu.
func (r *replicas) seenPrimaries() (list []int) {
	for n, s := range r.seen {
		if s.role == "master" && !r.dead[n] {
			list = append(list, n)
		}
	}
	return list
}

// settle waits until each part has one primary and every replica follows one.
func (r *replicas) settle(t *testing.T) {
	t.Helper()
	asked := time.Now().UnixMicro()
	r.await(t, "every part has a primary, and every replica follows", func() bool {
		primaries := 0
		for n, s := range r.seen {
			if r.dead[n] || s.asked <= asked || !s.healthy {
				return false
			}
			if s.role == "master" {
				primaries++
			}
		}
		return primaries == r.parts && len(r.open) == 0
	})
}

// replace kills a primary and, when a replica has taken over, starts it again.
func (r *replicas) replace(t *testing.T, n int) {
	t.Helper()
	r.nodes[n].server.Kill()
	r.mu.Lock()
	r.dead[n] = true
	r.seen[n] = sighting{}
	r.mu.Unlock()
	asked := time.Now().UnixMicro()
	r.await(t, "a replica takes over", func() bool {
		primaries := 0
		for _, s := range r.seen {
			if s.role == "master" && s.asked > asked {
				primaries++
			}
		}
		return primaries == r.parts
	})
	r.nodes[n].server.Restart()
	r.rejoin(n)
	r.mu.Lock()
	r.dead[n] = false
	r.mu.Unlock()
}

// takeOver lets a replica take its primary's place in good order.
func (r *replicas) takeOver(t *testing.T, dice uint64) {
	t.Helper()
	r.mu.Lock()
	var following []int
	for n, s := range r.seen {
		if s.role == "slave" {
			following = append(following, n)
		}
	}
	r.mu.Unlock()
	if len(following) == 0 {
		t.Fatal("there is no replica")
	}
	replica := following[dice%uint64(len(following))]
	var asked time.Time // and again if it came to nothing: a takeover in good order is given up after 5 s
	r.await(t, "the replica takes over", func() bool {
		if r.seen[replica].role == "master" {
			return true
		}
		if time.Since(asked) > 6*time.Second && r.hurry(replica) == nil {
			asked = time.Now()
		}
		return false
	})
}

// await polls until a condition, which mu guards, holds.
func (r *replicas) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(settlePatience); ; linger(lookEvery) {
		r.mu.Lock()
		ok, seen := holds(), fmt.Sprintf("seen %+v, dead %v, takeovers %v", r.seen, r.dead, r.open)
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s: %s", what, seen)
		}
	}
}
