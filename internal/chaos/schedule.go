package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Deed is something that a nemesis does.
type Deed string

// The deeds.
const (
	KillServer   Deed = "kill -9 a server and start it again"
	StopServer   Deed = "SIGSTOP a server for a while"
	FlushScripts Deed = "SCRIPT FLUSH"
	FlushData    Deed = "FLUSHALL"
	KillClients  Deed = "CLIENT KILL every connection"
	PauseClients Deed = "CLIENT PAUSE for a while"
	FillMemory   Deed = "no memory for a while"
	CutWire      Deed = "cut every connection on the way"
	Storm        Deed = "a storm on the wire for a while"
	KillCaller   Deed = "kill -9 a client process"

	// Where there are replicas, and where there are slots.
	FailOver Deed = "let a replica take over"
	MoveSlot Deed = "move a slot, key by key"
)

// likely is a deed, how often it is drawn, and whether it may lose data.
type likely struct {
	deed   Deed
	weight int
	loses  bool
}

// everywhere lists what can be done to any server.
var everywhere = []likely{
	{KillServer, 2, true}, {FlushData, 1, true}, {StopServer, 4, false}, {FlushScripts, 2, false}, {KillClients, 3, false},
	{PauseClients, 3, false}, {FillMemory, 2, false}, {CutWire, 3, false}, {Storm, 8, false}, {KillCaller, 2, false},
}

// Step is one deed of a schedule.
type Step struct {
	Begin time.Duration // since the start
	For   time.Duration
	Deed  Deed
	Dice  uint64 // which server, which process
}

func (s Step) String() string {
	return fmt.Sprintf("at %v for %v: %s", s.Begin.Round(time.Millisecond), s.For.Round(time.Millisecond), s.Deed)
}

// lossesApart is the least time between two deeds that may lose data: time
// enough for counters to be opened, spent, closed and compared. Where replicas
// take over, it goes on until the last one who decides in vain has learned it.
const (
	firstLoss      = 8 * time.Second
	lossesApart    = 12 * time.Second
	takeoversApart = 20 * time.Second
)

// Schedule draws what a nemesis does during a run, one deed at a time with
// calm between; also names what can be done beyond the usual. The same arguments
// give the same schedule. Every schedule that is long enough kills a server.
func Schedule(seed uint64, length time.Duration, also ...Deed) []Step {
	list := slices.Clone(everywhere)
	apart := lossesApart
	for _, d := range also {
		list = append(list, likely{d, 4, d == FailOver})
		if d == FailOver {
			apart = takeoversApart
			stop := slices.IndexFunc(list, func(l likely) bool { return l.deed == StopServer })
			list[stop].loses = true // if it is stopped for long enough
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x6e656d65736973))
	var steps []Step
	loss := firstLoss - apart
	for at := 500 * time.Millisecond; at < length; {
		s := Step{Begin: at, For: 100*time.Millisecond + time.Duration(rng.Int64N(int64(1200*time.Millisecond))), Dice: rng.Uint64()}
		deed, loses := drawDeed(rng, list)
		if at-loss >= apart && loss < 0 {
			deed, loses = KillServer, true
		}
		if loses && at-loss < apart {
			deed, loses = Storm, false
		}
		s.Deed = deed
		if loses {
			loss = at
		}
		steps = append(steps, s)
		at += s.For + 100*time.Millisecond + time.Duration(rng.Int64N(int64(700*time.Millisecond)))
	}
	return steps
}

func drawDeed(rng *rand.Rand, list []likely) (Deed, bool) {
	all := 0
	for _, d := range list {
		all += d.weight
	}
	n := rng.IntN(all)
	for _, d := range list {
		if n -= d.weight; n < 0 {
			return d.deed, d.loses
		}
	}
	return Storm, false
}
