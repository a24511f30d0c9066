//go:build !race

// The race detector empties pools at random, so allocations say nothing there.

package subject_test

import (
	"strings"
	"testing"

	"github.com/stintlimit/stint/subject"
)

func TestPseudonymAllocatesNothing(t *testing.T) {
	p := pseudonymizer(t, subject.EphemeralKeyRing())
	long := strings.Repeat("x", 10_000)
	got := testing.AllocsPerRun(200, func() {
		_, _ = p.Pseudonym(subject.ClientIP, "2001:db8::/64", "")
		_, _ = p.Pseudonym(subject.APIKey, long, "orders")
	})
	if got > 0 {
		t.Errorf("%v allocations", got)
	}
}
