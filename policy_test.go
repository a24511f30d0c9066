package stint_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
)

// fields lists the fields that NewPolicy complains about, in order.
func fields(err error) (list []string) {
	if invalid, ok := errors.AsType[*stint.InvalidPolicyError](err); ok {
		for _, p := range invalid.Problems {
			list = append(list, p.Field)
		}
	}
	return list
}

var minute = []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Minute}}

func TestNewPolicyNamesTheField(t *testing.T) {
	one := func(l stint.Limit) []stint.Limit { return []stint.Limit{l} }
	const most = int64(stint.MaxInteger)
	for _, c := range []struct {
		name   string
		policy stint.Policy
		want   []string
	}{
		{"no id", stint.Policy{Limits: minute}, []string{"ID"}},
		{"an id with a colon", stint.Policy{ID: "a:b", Limits: minute}, []string{"ID"}},
		{"an id that starts with a digit", stint.Policy{ID: "1a", Limits: minute}, []string{"ID"}},
		{"an id of 33 letters", stint.Policy{ID: strings.Repeat("a", 33), Limits: minute}, []string{"ID"}},
		{"no limits", stint.Policy{ID: "p"}, []string{"Limits"}},
		{"nine limits", stint.Policy{ID: "p", Limits: nine()}, []string{"Limits"}},
		{"a nil limit", stint.Policy{ID: "p", Limits: one(nil)}, []string{"Limits[0]"}},
		{"C10: a limit of 0", stint.Policy{ID: "p", Limits: one(stint.FixedWindow{Window: time.Second})}, []string{"Limits[0].Limit"}},
		{"C10: a window of 0", stint.Policy{ID: "p", Limits: one(stint.SlidingCounter{Limit: 1})}, []string{"Limits[0].Window"}},
		{"C10: a refill of 0", stint.Policy{ID: "p", Limits: one(stint.TokenBucket{Capacity: 1, Every: time.Second})}, []string{"Limits[0].Refill"}},
		{"C10: a period of a nanosecond", stint.Policy{ID: "p", Limits: one(stint.TokenBucket{Capacity: 1, Refill: 1, Every: 1})}, []string{"Limits[0].Every"}},
		{"a negative limit", stint.Policy{ID: "p", Limits: one(stint.FixedWindow{Limit: -1, Window: time.Second})}, []string{"Limits[0].Limit"}},
		{"a limit of 2^53", stint.Policy{ID: "p", Limits: one(stint.FixedWindow{Limit: most + 1, Window: time.Second})}, []string{"Limits[0].Limit"}},
		{"a part of a millisecond", stint.Policy{ID: "p", Limits: one(stint.FixedWindow{Limit: 1, Window: 1500 * time.Microsecond})}, []string{"Limits[0].Window"}},
		{"a window of a century and more", stint.Policy{ID: "p", Limits: one(stint.FixedWindow{Limit: 1, Window: stint.MaxDuration + time.Millisecond})}, []string{"Limits[0].Window"}},
		{
			"a product that leaves 2^53",
			stint.Policy{ID: "p", Limits: one(stint.SlidingCounter{Limit: most / 60_000, Window: time.Minute})}, []string{"Limits[0].Limit"},
		},
		{
			"a bucket that fills in centuries",
			stint.Policy{ID: "p", Limits: one(stint.TokenBucket{Capacity: 102, Refill: 1, Every: 365 * 24 * time.Hour})}, []string{"Limits[0].Capacity"},
		},
		{"a bad limit name", stint.Policy{ID: "p", Limits: one(stint.FixedWindow{Name: "a b", Limit: 1, Window: time.Second})}, []string{"Limits[0].Name"}},
		{"two limits of one shape", stint.Policy{ID: "p", Limits: slices.Concat(minute, minute)}, []string{"Limits[1]"}},
		{
			"two limits of one name",
			stint.Policy{ID: "p", Limits: []stint.Limit{
				stint.FixedWindow{Name: "a", Limit: 1, Window: time.Second}, stint.FixedWindow{Name: "a", Limit: 1, Window: time.Minute},
			}},
			[]string{"Limits[1].Name"},
		},
		{"a negative maximum cost", stint.Policy{ID: "p", Limits: minute, MaximumCost: -1}, []string{"MaximumCost"}},
		{"a cost that could never pass", stint.Policy{ID: "p", Limits: minute, MaximumCost: 11}, []string{"MaximumCost"}},
		{"a negative regression", stint.Policy{ID: "p", Limits: minute, MaximumClockRegression: -time.Second}, []string{"MaximumClockRegression"}},
		{"a grace of a nanosecond", stint.Policy{ID: "p", Limits: minute, CleanupGrace: 1}, []string{"CleanupGrace"}},
		{"a negative TTL", stint.Policy{ID: "p", Limits: minute, Dedup: stint.Dedup{TTL: -1}}, []string{"Dedup.TTL"}},
		{"negative entries", stint.Policy{ID: "p", Limits: minute, Dedup: stint.Dedup{MaxEntries: -1}}, []string{"Dedup.MaxEntries"}},
		{"too many bytes", stint.Policy{ID: "p", Limits: minute, Dedup: stint.Dedup{MaxBytes: 1<<24 + 1}}, []string{"Dedup.MaxBytes"}},
		{"another mode", stint.Policy{ID: "p", Limits: minute, Mode: 2}, []string{"Mode"}},
		{
			"everything at once",
			stint.Policy{
				ID: "-", Limits: []stint.Limit{stint.FixedWindow{}, nil, stint.TokenBucket{Capacity: 1, Refill: 1, Every: -1}},
				MaximumCost: -1, CleanupGrace: -1, Dedup: stint.Dedup{TTL: -1}, Mode: 9,
			},
			[]string{
				"ID", "Limits[0].Limit", "Limits[0].Window", "Limits[1]", "Limits[2].Every", "MaximumCost", "CleanupGrace", "Dedup.TTL", "Mode",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := stint.NewPolicy(c.policy)
			if p != nil || err == nil {
				t.Fatalf("got %v, %v", p, err)
			}
			if diff := cmp.Diff(c.want, fields(err)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
			for _, f := range c.want {
				if !strings.Contains(err.Error(), f) {
					t.Errorf("%q does not name %s", err, f)
				}
			}
		})
	}
}

// nine are limits of nine shapes.
func nine() (list []stint.Limit) {
	for i := range 9 {
		list = append(list, stint.FixedWindow{Limit: 1, Window: time.Duration(i+1) * time.Second})
	}
	return list
}

func TestNewPolicyTakesTheExtremes(t *testing.T) {
	const most = int64(stint.MaxInteger)
	for name, l := range map[string]stint.Limit{
		"the largest window":        stint.FixedWindow{Limit: most, Window: stint.MaxDuration},
		"the smallest window":       stint.FixedWindow{Limit: 1, Window: time.Millisecond},
		"the largest counter":       stint.SlidingCounter{Limit: most/60_000 - 1, Window: time.Minute},
		"the longest counter":       stint.SlidingCounter{Limit: most/stint.MaxDuration.Milliseconds() - 1, Window: stint.MaxDuration},
		"the largest bucket":        stint.TokenBucket{Capacity: most, Refill: most, Every: stint.MaxDuration},
		"the slowest bucket":        stint.TokenBucket{Capacity: 100, Refill: 1, Every: 365 * 24 * time.Hour},
		"more refill than capacity": stint.TokenBucket{Capacity: 1, Refill: 1_000_000_001, Every: time.Second},
	} {
		if _, err := stint.NewPolicy(stint.Policy{ID: "p", Limits: []stint.Limit{l}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewPolicyFillsInDefaults(t *testing.T) {
	given := stint.Policy{ID: "p", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 20, Window: time.Minute}, stint.TokenBucket{Name: "burst", Capacity: 7, Refill: 1, Every: time.Second},
	}}
	p, err := stint.NewPolicy(given)
	if err != nil {
		t.Fatal(err)
	}
	if given.Frozen() || !p.Frozen() {
		t.Errorf("frozen: given %v, returned %v", given.Frozen(), p.Frozen())
	}
	if p.MaximumCost != 7 || p.MaximumClockRegression != 5*time.Second || p.CleanupGrace != 30*time.Second {
		t.Errorf("got %d, %v, %v", p.MaximumCost, p.MaximumClockRegression, p.CleanupGrace)
	}
	if want := (stint.Dedup{TTL: 5 * time.Second, MaxEntries: 256, MaxBytes: 65536}); p.Dedup != want {
		t.Errorf("dedup %+v, want %+v", p.Dedup, want)
	}
	if p.LimitName(0) != "p-1" || p.LimitName(1) != "burst" {
		t.Errorf("names %q and %q", p.LimitName(0), p.LimitName(1))
	}
	given.Limits[0] = nil
	if p.Limits[0] == nil {
		t.Error("the policy shares its limits with what was given")
	}
}

func TestKeysTellCountersApart(t *testing.T) {
	limits := []stint.Limit{
		stint.TokenBucket{Capacity: 7, Refill: 1, Every: time.Second}, stint.FixedWindow{Limit: 20, Window: 90 * time.Second},
		stint.SlidingCounter{Limit: 2, Window: 48 * time.Hour}, stint.FixedWindow{Limit: 20, Window: 1500 * time.Millisecond},
	}
	key := func(p stint.Policy) string {
		frozen, err := stint.NewPolicy(p)
		if err != nil {
			t.Fatal(err)
		}
		return frozen.Key()
	}
	const want = "api:3:1f1500-f90s-s2d-t1s"
	if got := key(stint.Policy{ID: "api", Revision: 3, Limits: limits}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	reversed := slices.Clone(limits)
	slices.Reverse(reversed)
	reversed[3] = stint.TokenBucket{Capacity: 9, Refill: 4, Every: time.Second, Name: "other"}
	if got := key(stint.Policy{ID: "api", Revision: 3, Limits: reversed, Mode: stint.Shadow}); got != want {
		t.Errorf("other order, sizes, names and mode: got %q, want %q", got, want)
	}
	if got := key(stint.Policy{ID: "api", Revision: 4, Limits: limits}); got == want {
		t.Error("another revision has the same key")
	}
}

// TestKeysNeedNoEscaping: a key that Redis would split, or hash in part, would
// put a counter beside another's.
func TestKeysNeedNoEscaping(t *testing.T) {
	for _, id := range []string{"a{b", "a}b", "a b", "a\nb", "é", "a:b"} {
		if _, err := stint.NewPolicy(stint.Policy{ID: id, Limits: minute}); err == nil {
			t.Errorf("%q is taken for an id", id)
		}
	}
}
