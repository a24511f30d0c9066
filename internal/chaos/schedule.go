package chaos

import (
	"fmt"
	"math/rand/v2"
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
)

// everyDeed lists them with how often they are drawn.
var everyDeed = []struct {
	deed   Deed
	weight int
	loses  bool
}{
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
// enough for counters to be opened, spent, closed and compared.
const lossesApart = 12 * time.Second

// Schedule draws what a nemesis does during a run, one deed at a time with
// calm between. The same seed and length give the same schedule. Every schedule
// that is long enough kills a server.
func Schedule(seed uint64, length time.Duration) []Step {
	rng := rand.New(rand.NewPCG(seed, 0x6e656d65736973))
	var steps []Step
	loss := Step{Begin: -lossesApart / 2}
	for at := 500 * time.Millisecond; at < length; {
		s := Step{Begin: at, For: 100*time.Millisecond + time.Duration(rng.Int64N(int64(1200*time.Millisecond))), Dice: rng.Uint64()}
		deed, loses := drawDeed(rng)
		if at-loss.Begin >= lossesApart && loss.Begin < 0 {
			deed, loses = KillServer, true
		}
		if loses && at-loss.Begin < lossesApart {
			deed, loses = Storm, false
		}
		s.Deed = deed
		if loses {
			loss = s
		}
		steps = append(steps, s)
		at += s.For + 100*time.Millisecond + time.Duration(rng.Int64N(int64(700*time.Millisecond)))
	}
	return steps
}

func drawDeed(rng *rand.Rand) (Deed, bool) {
	all := 0
	for _, d := range everyDeed {
		all += d.weight
	}
	n := rng.IntN(all)
	for _, d := range everyDeed {
		if n -= d.weight; n < 0 {
			return d.deed, d.loses
		}
	}
	return Storm, false
}
