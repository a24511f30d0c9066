package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Evidence is what all runs on one kind of servers came to.
type Evidence struct {
	Kind    string // of servers
	Runs    int
	Seed    uint64 // of the first run; the others count from it
	Elapsed time.Duration
	Total   Report
}

// Add counts a run.
func (e *Evidence) Add(r *Report, elapsed time.Duration) {
	e.Runs++
	e.Elapsed += elapsed
	t := &e.Total
	t.Operations += r.Operations
	t.IDs += r.IDs
	t.Repeated += r.Repeated
	t.Resolved += r.Resolved
	t.Unresolved += r.Unresolved
	t.Losses += r.Losses
	t.Counters += r.Counters
	t.Compared += r.Compared
	t.Passed += r.Passed
	t.Ordered += r.Ordered
	t.Undecided += r.Undecided
	t.Faults += r.Faults
	t.Met += r.Met
	t.Violations = append(t.Violations, r.Violations...)
	if t.Outcomes == nil {
		t.Outcomes = map[string]int{}
	}
	for k, n := range r.Outcomes {
		t.Outcomes[k] += n
	}
}

// The lines between which a page keeps what the suite writes.
const (
	evidenceBegin = "<!-- evidence: begin; `make chaos` rewrites this part -->\n"
	evidenceEnd   = "<!-- evidence: end -->\n"
)

// Rewrite returns a page with its part of evidence replaced.
func Rewrite(page, server string, when time.Time, list []Evidence) (string, error) {
	before, rest, ok := strings.Cut(page, evidenceBegin)
	_, after, ended := strings.Cut(rest, evidenceEnd)
	if !ok || !ended {
		return "", fmt.Errorf("the page has no part that lies between %q and %q", evidenceBegin, evidenceEnd)
	}
	return before + evidenceBegin + describe(server, when, list) + evidenceEnd + after, nil
}

// describe writes the evidence as Markdown: a column for each kind of servers.
func describe(server string, when time.Time, list []Evidence) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nRun on %s with Redis %s.\n\n", when.UTC().Format(time.DateOnly), server)
	row := func(name string, cell func(e *Evidence) any) {
		fmt.Fprintf(&b, "| %s |", name)
		for i := range list {
			fmt.Fprintf(&b, " %v |", cell(&list[i]))
		}
		b.WriteByte('\n')
	}
	row("", func(e *Evidence) any { return e.Kind })
	row("---", func(*Evidence) any { return "---:" })
	row("time under load", func(e *Evidence) any { return e.Elapsed.Round(time.Second) })
	row("runs; the first seed", func(e *Evidence) any { return fmt.Sprintf("%d; %d", e.Runs, e.Seed) })
	row("deeds of the nemesis", func(e *Evidence) any { return e.Total.Faults })
	row("faults on the wire", func(e *Evidence) any { return e.Total.Met })
	row("losses of data", func(e *Evidence) any { return e.Total.Losses })
	row("operations", func(e *Evidence) any { return e.Total.Operations })
	outcomes := map[string]bool{}
	for _, e := range list {
		for k := range e.Total.Outcomes {
			outcomes[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		row("– "+k, func(e *Evidence) any { return e.Total.Outcomes[k] })
	}
	row("evaluation ids; repeated", func(e *Evidence) any { return fmt.Sprintf("%d; %d", e.Total.IDs, e.Total.Repeated) })
	row("unknown, resolved by repeating; not resolved", func(e *Evidence) any {
		return fmt.Sprintf("%d; %d", e.Total.Resolved, e.Total.Unresolved)
	})
	row("counters held to their bound", func(e *Evidence) any { return e.Total.Counters })
	row("sums compared with the server; not comparable", func(e *Evidence) any {
		return fmt.Sprintf("%d; %d", e.Total.Compared, e.Total.Passed)
	})
	row("counters found linearizable; undecided", func(e *Evidence) any {
		return fmt.Sprintf("%d; %d", e.Total.Ordered, e.Total.Undecided)
	})
	row("**promises broken**", func(e *Evidence) any { return fmt.Sprintf("**%d**", len(e.Total.Violations)) })
	b.WriteByte('\n')
	return b.String()
}
