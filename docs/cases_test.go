package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var namedTest = regexp.MustCompile("`([a-z/]+)\\.([A-Za-z0-9]+)`")

// A page that names a test as evidence names one that exists.
func TestCasesNameTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("cases.md")
	if err != nil {
		t.Fatal(err)
	}
	named := namedTest.FindAllStringSubmatch(string(page), -1)
	if len(named) < 40 {
		t.Fatalf("only %d tests are named", len(named))
	}
	for _, m := range named {
		dir := m[1]
		if dir == "stint" {
			dir = "."
		}
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		defined := regexp.MustCompile(`(?m)^func ` + m[2] + `\(`)
		found := false
		for _, f := range files {
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || defined.Match(source)
		}
		if !found {
			t.Errorf("%s has no %s", m[1], m[2])
		}
	}
}
