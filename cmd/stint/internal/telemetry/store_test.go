package telemetry

import (
	"slices"
	"strings"
	"testing"
)

func TestTheStoreAndItsBreakerAreShown(t *testing.T) {
	m := New([]string{"api"}, "", "")
	up, state := false, "closed"
	m.Reachable(func() bool { return up })
	opened := m.Breaker([]string{"closed", "open"}, func() string { return state })
	for _, step := range []struct {
		what  func()
		shows []string
	}{
		{func() {}, []string{"store_up 0", `breaker_state{state="closed"} 1`, `breaker_state{state="open"} 0`, "breaker_opened_total 0"}},
		{func() { up = true }, []string{"store_up 1"}},
		{func() { state = "open"; opened() }, []string{
			`breaker_state{state="closed"} 0`, `breaker_state{state="open"} 1`, "breaker_opened_total 1",
		}},
	} {
		step.what()
		lines := strings.Split(scrape(t, m), "\n")
		for _, want := range step.shows {
			if !slices.Contains(lines, "stint_"+want) {
				t.Errorf("stint_%s is missing", want)
			}
		}
	}
}

func TestSubjectsAreShownBesideTheirLimit(t *testing.T) {
	m := New([]string{"api"}, "", "")
	held := 0
	m.Subjects(func() int { return held }, 1_000_000)
	for _, held = range []int{0, 864_000} {
		lines := strings.Split(scrape(t, m), "\n")
		want := map[int]string{0: "0", 864_000: "864000"}[held]
		if !slices.Contains(lines, "stint_store_subjects "+want) || !slices.Contains(lines, "stint_store_subjects_limit 1e+06") {
			t.Errorf("%d held: %v", held, series(strings.Join(lines, "\n")))
		}
	}
}
