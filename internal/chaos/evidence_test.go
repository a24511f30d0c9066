package chaos

import (
	"strings"
	"testing"
	"time"
)

func TestThePartOfAPageIsRewrittenAndNothingElse(t *testing.T) {
	page := "# before\n" + evidenceBegin + "old\n" + evidenceEnd + "after\n"
	var a, b Evidence
	a.Kind, b.Kind = "one", "two"
	a.Add(&Report{Operations: 3, Outcomes: map[string]int{"allowed": 2}}, time.Minute)
	a.Add(&Report{Operations: 4, Outcomes: map[string]int{"allowed": 1, "denied": 1}, Violations: make([]Violation, 1)}, time.Minute)
	got, err := Rewrite(page, "7.0", time.Unix(0, 0), []Evidence{a, b})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# before\n" + evidenceBegin, evidenceEnd + "after\n", "Run on 1970-01-01 with Redis 7.0.",
		"| operations | 7 | 0 |\n", "| – allowed | 3 | 0 |\n", "| time under load | 2m0s | 0s |\n", "| **promises broken** | **1** | **0** |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") {
		t.Error("the old part is still there")
	}
	if again, err := Rewrite(got, "7.0", time.Unix(0, 0), []Evidence{a, b}); err != nil || again != got {
		t.Errorf("rewriting it again changed it: %v", err)
	}
	if _, err := Rewrite("# no part\n", "", time.Now(), nil); err == nil {
		t.Error("a page without the part was rewritten")
	}
}
