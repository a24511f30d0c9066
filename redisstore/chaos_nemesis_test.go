//go:build chaos

package redisstore

import (
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

// nemesis does the deeds of a schedule. It is for one goroutine.
type nemesis struct {
	*testing.T
	system   *rig
	recorder *chaos.Recorder
	crash    func(dice uint64) // a client process
}

// do does one deed, and undoes what it did that does not pass by itself.
func (n *nemesis) do(step chaos.Step) {
	begun := time.Now()
	n.recorder.Fault(chaos.Fault{At: begun.UnixMicro(), What: string(step.Deed)})
	defer func() { n.Logf("%v; took %v", step, time.Since(begun).Round(time.Millisecond)) }()
	at := n.choose(step)
	target := n.system.nodes[at]
	switch step.Deed {
	case chaos.KillServer:
		n.kill(at, min(step.For, 500*time.Millisecond))
	case chaos.FlushData:
		lost := n.losing(step.Deed)
		n.ask(target.server, "flushall")
		lost()
	case chaos.StopServer:
		target.server.Pause()
		linger(step.For)
		target.server.Resume()
	case chaos.FailOver:
		n.system.replicas.takeOver(n.T, step.Dice)
	case chaos.MoveSlot:
		n.system.moveSlot(step.Dice, step.For)
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

// choose returns a server for a deed: one that decides, if there are others,
// and when all is well, if it is a deed that may lose data.
func (n *nemesis) choose(step chaos.Step) int {
	r := n.system.replicas
	if r == nil {
		return int(step.Dice % uint64(len(n.system.nodes)))
	}
	switch step.Deed {
	case chaos.KillServer, chaos.StopServer, chaos.FlushData, chaos.FillMemory, chaos.FailOver, chaos.MoveSlot:
		r.settle(n.T)
	}
	primaries := r.primaries(n.T)
	return primaries[step.Dice%uint64(len(primaries))]
}

// kill ends a server as a crash does and starts it again: where there is a
// replica, after that has taken over.
func (n *nemesis) kill(at int, downFor time.Duration) {
	server := n.system.nodes[at].server
	if r := n.system.replicas; r != nil {
		r.replace(n.T, at)
		return
	}
	lost := n.losing(chaos.KillServer)
	server.Kill()
	if !n.system.keeps {
		lost()
	}
	linger(downFor)
	server.Restart()
}

// losing begins a loss of data; what it returns ends and records it.
func (n *nemesis) losing(d chaos.Deed) func() {
	from := time.Now().UnixMicro()
	return func() {
		n.recorder.Loss(chaos.Loss{What: string(d), From: from, To: time.Now().UnixMicro()})
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
