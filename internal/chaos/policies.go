package chaos

import (
	"strconv"
	"time"

	"github.com/stintlimit/stint"
)

// The policies of a run. Those of the first six hold sums for ever.
const (
	Solo    = "solo"   // charged alone, so that its answers have one order
	Joint   = "joint"  // charged beside others
	Scarce  = "scarce" // soon spent, so that its groups are denied
	Plain   = "plain"  // without deduplication
	Lent    = "lent"   // often refunded
	Owed    = "owed"   // charged and refunded beside Lent
	Fixed   = "fixed"
	Sliding = "sliding"
	Bucket  = "bucket"
	Several = "several"
)

// regression is how far clocks may go back: less than the skew that a run
// gives its callers, so that some are refused.
const regression = time.Second

// Policies returns the policies of a run, frozen or as a Limiter takes them.
// Short windows and short grace: a key that ends too early is soon missed.
func Policies() []stint.Policy {
	list := []stint.Policy{
		{ID: Solo, Limits: []stint.Limit{stint.FixedWindow{Limit: 150, Window: stint.MaxDuration}}},
		{ID: Joint, Limits: []stint.Limit{stint.FixedWindow{Limit: 400, Window: stint.MaxDuration}}},
		{ID: Scarce, Limits: []stint.Limit{stint.FixedWindow{Limit: 40, Window: stint.MaxDuration}}},
		{ID: Plain, Limits: []stint.Limit{stint.FixedWindow{Limit: 150, Window: stint.MaxDuration}}},
		{ID: Lent, Limits: []stint.Limit{stint.FixedWindow{Limit: 60, Window: stint.MaxDuration}}},
		{ID: Owed, Limits: []stint.Limit{stint.FixedWindow{Limit: 60, Window: stint.MaxDuration}}},
		{ID: Fixed, Limits: []stint.Limit{stint.FixedWindow{Limit: 20, Window: 500 * time.Millisecond}}},
		{ID: Sliding, Limits: []stint.Limit{stint.SlidingCounter{Limit: 20, Window: 500 * time.Millisecond}}},
		{ID: Bucket, Limits: []stint.Limit{stint.TokenBucket{Capacity: 20, Refill: 5, Every: 150 * time.Millisecond}}},
		{ID: Several, Limits: []stint.Limit{
			stint.FixedWindow{Limit: 30, Window: time.Second}, stint.TokenBucket{Capacity: 15, Refill: 3, Every: 100 * time.Millisecond},
		}},
	}
	for i := range list {
		list[i].MaximumClockRegression, list[i].CleanupGrace = regression, time.Second
		// Longer than any call is repeated for: see Program.
		list[i].Dedup = stint.Dedup{TTL: time.Minute, MaxEntries: 2048, MaxBytes: 1 << 20, Off: list[i].ID == Plain}
	}
	return list
}

// Frozen returns the policies as [Check] takes them.
func Frozen() ([]*stint.Policy, error) {
	var frozen []*stint.Policy
	for _, p := range Policies() {
		f, err := stint.NewPolicy(p)
		if err != nil {
			return nil, err
		}
		frozen = append(frozen, f)
	}
	return frozen, nil
}

// Key is a counter's key on a server: what history and audits call it.
func Key(prefix string, subject stint.Pseudonym, p *stint.Policy) string {
	return prefix + ":{" + subject.String() + "}:" + p.Key()
}

// Subject is a pseudonym that a reader of keys may recognise.
func Subject(name string) stint.Pseudonym {
	p := stint.Pseudonym{Version: 1}
	copy(p.Digest[:], name)
	return p
}

// generationLength is how long a counter of a sum is asked for more.
const generationLength = 2 * time.Second

// subjects is how many subjects each generation, and each run, has.
const subjects = 2

// fresh names a subject of a generation; lasting names one of the whole run.
func fresh(generation int64, n int) string {
	return "fresh" + strconv.FormatInt(generation, 10) + "-" + strconv.Itoa(n)
}

func lasting(n int) string { return "lasting" + strconv.Itoa(n) }
