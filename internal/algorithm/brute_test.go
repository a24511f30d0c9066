package algorithm_test

import (
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// TestSlidingAgreesWithItsDefinition compares every small sliding counter, at
// every instant and for every cost, with the sentence that defines it,
// evaluated a millisecond at a time.
func TestSlidingAgreesWithItsDefinition(t *testing.T) {
	const most = 5
	for window := int64(1); window <= 9; window++ {
		term := terms(t, stint.SlidingCounter{Limit: most, Window: time.Duration(window) * time.Millisecond})
		begin := day - day%window
		for previous := range int64(most + 3) {
			for current := range int64(most + 3) {
				for elapsed := range window {
					now, s := begin+elapsed, algorithm.State{Spent: current, Extra: previous}
					for cost := int64(1); cost <= most; cost++ {
						want := int64(0)
						for at := now; !defined(window, most, previous, current, at-begin, cost); {
							at++
							want = at
						}
						if got := algorithm.Wait(term, s, now, cost); got != want {
							t.Fatalf("window %d, previous %d, current %d, %d ms elapsed, cost %d: passes at +%d, want +%d",
								window, previous, current, elapsed, cost, got-now, want-now)
						}
					}
				}
			}
		}
	}
}

// defined reports whether cost passes that long after the start of the window
// in which current was counted.
func defined(window, limit, previous, current, elapsed, cost int64) bool {
	switch elapsed / window {
	case 0:
	case 1:
		previous, current = current, 0
	default:
		previous, current = 0, 0
	}
	left := window - elapsed%window
	return previous*left/window+current+cost <= limit
}

// TestBucketAgreesWithItsDefinition does the same for buckets, that gain
// tokens at the end of each period until they are full.
func TestBucketAgreesWithItsDefinition(t *testing.T) {
	for every := int64(1); every <= 4; every++ {
		for capacity := int64(1); capacity <= 6; capacity++ {
			for refill := int64(1); refill <= 7; refill++ {
				term := terms(t, stint.TokenBucket{Capacity: capacity, Refill: refill, Every: time.Duration(every) * time.Millisecond})
				for deficit := range capacity + 1 {
					for cost := int64(1); cost <= capacity; cost++ {
						s := algorithm.State{Spent: deficit, Extra: day}
						want := int64(0)
						for at := day; max(0, deficit-(at-day)/every*refill)+cost > capacity; {
							at++
							want = at
						}
						if got := algorithm.Wait(term, s, day, cost); got != want {
							t.Fatalf("every %d, capacity %d, refill %d, deficit %d, cost %d: passes at +%d, want +%d",
								every, capacity, refill, deficit, cost, got-day, want-day)
						}
					}
				}
			}
		}
	}
}
