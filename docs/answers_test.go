package docs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

var (
	// waits are what depends on the instant of a request, not on its outcome.
	waits = regexp.MustCompile(`(;t=|^retry-after: )\d+`)
	// field is the name of a field, which is the same in any case.
	field = regexp.MustCompile(`^[A-Za-z-]+: `)
)

func normalise(line string) string {
	line = field.ReplaceAllStringFunc(strings.TrimSpace(line), strings.ToLower)
	return waits.ReplaceAllString(line, "${1}N")
}

// compareResponse holds a response that a page shows to the last one that its
// commands received: status, the fields shown, and the body if one is shown.
// On a page without requests only the fields' syntax is checked.
func (s *session) compareResponse(b block) {
	s.t.Helper()
	checkFields(s.t, b)
	if !s.responses {
		return
	}
	i := strings.LastIndex(s.output, "HTTP/1.1 ")
	if i < 0 {
		s.t.Errorf("%s: the commands before it printed no response", b)
		return
	}
	got := strings.ReplaceAll(s.output[i:], "\r\n", "\n")
	gotHead, gotBody, _ := strings.Cut(got, "\n\n")
	wantHead, wantBody, _ := strings.Cut(b.text, "\n\n")

	fields := map[string]bool{}
	for line := range strings.Lines(gotHead) {
		fields[normalise(line)] = true
	}
	for line := range strings.Lines(wantHead) {
		if want := normalise(line); want != "" && !fields[want] {
			s.t.Errorf("%s shows\n\t%s\nand stint answered\n%s", b, want, got)
		}
	}
	if want := strings.TrimSpace(wantBody); want != "" && want != strings.TrimSpace(gotBody) {
		s.t.Errorf("%s shows the body\n\t%s\nand stint answered\n\t%s", b, want, gotBody)
	}
}

// checkFields checks that fields of ours are well-formed.
func checkFields(t *testing.T, b block) {
	t.Helper()
	head, _, _ := strings.Cut(b.text, "\n\n")
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch strings.ToLower(name) {
		case "ratelimit", "ratelimit-policy":
			if _, err := httpsfv.UnmarshalList([]string{value}); err != nil {
				t.Errorf("%s: %s is not a structured list: %v", b, name, err)
			}
		case "retry-after":
			if n, err := strconv.Atoi(value); err != nil || n < 1 {
				t.Errorf("%s: %s is no positive number of seconds", b, line)
			}
		}
	}
}

// compareOutput looks for the lines that a page shows, in order, in what its
// commands printed. "…" stands for anything, a line of it for any lines.
func (s *session) compareOutput(b block) {
	s.t.Helper()
	rest := strings.Split(strings.ReplaceAll(s.output, "\r\n", "\n"), "\n")
	for _, line := range b.lines() {
		if strings.TrimSpace(line) == "…" {
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(normalise(line)), "…", ".*")
		want := regexp.MustCompile("^" + pattern + "$")
		found := false
		for len(rest) > 0 && !found {
			found = want.MatchString(normalise(rest[0]))
			rest = rest[1:]
		}
		if !found {
			s.t.Errorf("%s shows\n\t%s\nand the commands printed\n%s", b, line, s.output)
			return
		}
	}
}
