package chaos

import (
	"math/rand/v2"
	"time"
)

// driftStep is how often a caller's clock may step.
const driftStep = 400 * time.Millisecond

// drift returns how far a process's clock stands from the machine's: mostly
// near, sometimes further than a counter tolerates, and in far of a hundred
// steps perhaps further than a server does. It steps, and does not follow from
// what it was.
func drift(seed uint64, process int, sinceStart time.Duration, far int) time.Duration {
	step := uint64(sinceStart / driftStep)
	rng := rand.New(rand.NewPCG(seed, uint64(process)<<32|step))
	reach := 20 * time.Millisecond
	switch n := rng.IntN(100); {
	case n < far:
		reach = 6 * time.Second
	case n >= 70:
		reach = 1900 * time.Millisecond
	case n >= 40:
		reach = 400 * time.Millisecond
	}
	return time.Duration(rng.Int64N(int64(2*reach))) - reach
}
