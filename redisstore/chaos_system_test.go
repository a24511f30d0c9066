//go:build chaos

package redisstore

import (
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
}

// rig is what runs: servers, and the weather in front of each.
type rig struct {
	nodes []victim

	// clients is how client processes reach the servers: through the weather.
	// direct is how the suite does.
	clients, direct reach

	// keeps: a server that was killed comes back with everything it answered for.
	keeps bool

	// holder returns the server that holds a key.
	holder func(key string) *redistest.Server
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
		holder:  func(string) *redistest.Server { return server },
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

func (s *rig) blow(o redistest.Odds) {
	for _, n := range s.nodes {
		n.weather.Set(o)
	}
}

// nemesis does the deeds of a schedule. It is for one goroutine.
type nemesis struct {
	*testing.T
	system   *rig
	recorder *chaos.Recorder
	crash    func(dice uint64) // a client process
}

// do does one deed, and undoes what it did that does not pass by itself.
func (n *nemesis) do(step chaos.Step) {
	n.recorder.Fault(chaos.Fault{At: time.Now().UnixMicro(), What: string(step.Deed)})
	target := n.system.nodes[step.Dice%uint64(len(n.system.nodes))]
	switch step.Deed {
	case chaos.KillServer:
		lost := n.losing(step.Deed, n.system.keeps)
		target.server.Kill()
		lost()
		linger(min(step.For, 500*time.Millisecond))
		target.server.Restart()
	case chaos.FlushData:
		lost := n.losing(step.Deed, false)
		n.ask(target.server, "flushall")
		lost()
	case chaos.StopServer:
		target.server.Pause()
		linger(step.For)
		target.server.Resume()
	case chaos.FlushScripts:
		n.ask(target.server, "script", "flush")
	case chaos.KillClients:
		n.ask(target.server, "client", "kill", "type", "normal")
	case chaos.PauseClients:
		n.ask(target.server, "client", "pause", "300", "all")
	case chaos.FillMemory:
		n.ask(target.server, "config", "set", "maxmemory", "1")
		linger(step.For)
		n.ask(target.server, "config", "set", "maxmemory", "0")
	case chaos.CutWire:
		target.weather.CutAll()
	case chaos.Storm:
		n.system.blow(storm)
		linger(step.For)
		n.system.blow(drizzle)
	case chaos.KillCaller:
		n.crash(step.Dice)
	default:
		n.Fatalf("nobody knows how to do: %s", step.Deed)
	}
}

// losing begins a loss of data; what it returns ends and records it.
func (n *nemesis) losing(d chaos.Deed, nothing bool) func() {
	from := time.Now().UnixMicro()
	return func() {
		if !nothing {
			n.recorder.Loss(chaos.Loss{What: string(d), From: from, To: time.Now().UnixMicro()})
		}
	}
}

// ask sends a command, and again if the server lets it wait or cuts it off: a
// deed that fails would be no deed.
func (n *nemesis) ask(s *redistest.Server, command ...string) {
	n.Helper()
	var err error
	for range 5 {
		if _, err = s.Do(command...); err == nil {
			return
		}
	}
	n.Fatalf("%q: %v", command, err)
}

func linger(d time.Duration) { <-time.After(d) }
