//go:build chaos

package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

// arena is a kind of system that the suite breaks. Another kind is one more
// entry of arenas.
type arena struct {
	name  string
	start func(t *testing.T, seed uint64) *rig
}

// arenas lists what is tested. Both kinds of a standalone server run the
// same program: one forgets everything when it is killed, one forgets nothing.
var arenas = []arena{
	{"standalone in memory", func(t *testing.T, seed uint64) *rig { return oneServer(t, seed, false) }},
	{"standalone with an append-only file", func(t *testing.T, seed uint64) *rig { return oneServer(t, seed, true) }},
	{"primary, replica and Sentinel", withSentinel},
	{"Cluster of three primaries and three replicas", sixNodes},
}

// rig is what runs: servers, the weather in front of each, and what is special
// about them. Its functions are for the nemesis.
type rig struct {
	nodes []victim

	// clients is how client processes reach the servers: through the weather.
	// direct is how the suite does.
	clients, direct reach

	// keeps: a server that was killed comes back with everything it answered for.
	keeps bool

	// also lists what can be done here beyond the usual.
	also []chaos.Deed

	// replicas is nil where there are none.
	replicas *replicas

	// moveSlot moves the slot of some key, with a pause in between.
	moveSlot func(dice uint64, pause time.Duration)
}

type victim struct {
	server  *redistest.Server
	weather *redistest.Weather
}

func oneServer(t *testing.T, seed uint64, keeps bool) *rig {
	t.Helper()
	var args []string
	if keeps {
		args = []string{"--appendonly", "yes", "--appendfsync", "always"}
	}
	server := redistest.Start(t, args...)
	weather := redistest.StartWeather(t, server.Addr(), seed)
	return &rig{
		nodes:   []victim{{server, weather}},
		clients: reach{Addresses: []string{weather.Addr()}},
		direct:  reach{Addresses: []string{server.Addr()}},
		keeps:   keeps,
	}
}

// drizzle is the weather of every run; storm is that of some of its moments. A
// squall loses one reply in twelve, so that much is sent again and little ends
// unknown.
var (
	drizzle = redistest.Odds{
		DelayCommand: 8, LoseCommand: 2, CutCommand: 2, LateCommand: 3,
		DelayReply: 8, LoseReply: 4, CutReply: 2, HoldReply: 2, SpoilReply: 2,
	}
	squall = redistest.Odds{LoseReply: 80}
	storm  = redistest.Odds{
		DelayCommand: 80, LoseCommand: 20, CutCommand: 20, LateCommand: 90,
		DelayReply: 60, LoseReply: 60, CutReply: 20, HoldReply: 30, SpoilReply: 20,
	}
)

// ttl asks the server that holds a key for its PTTL.
func (s *rig) ttl(key string) (string, error) {
	var errs []error
	for _, n := range s.nodes {
		reply, err := n.server.Do("pttl", key)
		if err == nil {
			return reply, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

func (s *rig) blow(o redistest.Odds) {
	for _, n := range s.nodes {
		n.weather.Set(o)
	}
}
