package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var evidence = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.([A-Za-z]+)`")

// Each row of a table and each point of a list on the page about failures says
// which tests show it, and there are such tests.
func TestEveryClaimAboutFailuresNamesItsTests(t *testing.T) {
	const page = "failure-semantics.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	claims := claimsOf(string(text))
	if len(claims) < 40 {
		t.Fatalf("only %d claims", len(claims))
	}
	for _, c := range claims {
		named := 0
		for _, m := range evidence.FindAllStringSubmatch(c, -1) {
			if m[1] == "stint" && !strings.HasPrefix(m[2], "Test") {
				continue // the Go name of something
			}
			named++
			if !defines(t, m[1], m[2]) {
				t.Errorf("%s: there is no %s in %s", page, m[2], m[1])
			}
		}
		if named == 0 {
			t.Errorf("%s names no test: %s", page, c)
		}
	}
}

// claimsOf returns the rows of tables, without their heads, and the points of
// lists of a page.
func claimsOf(text string) []string {
	var claims []string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isHead := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		switch {
		case strings.HasPrefix(line, "| ") && !isHead, strings.HasPrefix(line, "- "):
			claims = append(claims, line)
		case strings.HasPrefix(line, "  ") && len(claims) > 0: // the point goes on
			claims[len(claims)-1] += line
		}
	}
	return claims
}

// defines reports whether a package of this repository has a function.
func defines(t *testing.T, pkg, function string) bool {
	t.Helper()
	if pkg == "stint" {
		pkg = "."
	}
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + function + `\(`).Match(source) {
			return true
		}
	}
	return false
}
