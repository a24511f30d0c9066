package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns the README, the other pages of the root and those of docs, as
// paths from the root.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range found {
		found[i] = filepath.ToSlash(filepath.Join("docs", path))
	}
	return found
}

func TestPages(t *testing.T) {
	stint := build(t)
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, stint)
			blocks := parse(t, page, filepath.Join("..", page))
			for _, b := range blocks {
				if b.skip == "" {
					runBlock(t, s, b)
				}
			}
		})
	}
}

// runBlock tests one block by its language.
func runBlock(t *testing.T, s *session, b block) {
	t.Helper()
	if b.file != "" {
		s.write(b)
	}
	switch b.lang {
	case "sh":
		s.shell(b)
	case "http":
		s.compareResponse(b)
	case "text":
		s.compareOutput(b)
	case "yaml":
		s.check(b)
	case "go":
		compile(t, b)
	case "json":
		if !json.Valid([]byte(b.text)) {
			t.Errorf("%s is not JSON", b)
		}
	case "acl":
		s.acl(b)
	default:
		t.Errorf("%s: this test does not know how to run it; see the package comment", b)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`)

// A page refers only to files that exist.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := filepath.Join("..", filepath.Dir(page), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s refers to %s, which does not exist", page, m[1])
			}
		}
	}
}

// Every decision is in the list of decisions.
func TestDecisionsAreListed(t *testing.T) {
	list, err := os.ReadFile("decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatalf("found decisions %v (%v)", decisions, err)
	}
	for _, d := range decisions {
		if !strings.Contains(string(list), "]("+filepath.Base(d)+")") {
			t.Errorf("decisions/README.md does not list %s", d)
		}
	}
}

// build returns the folder of a stint binary made from this tree.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "stint"), "../cmd/stint").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}
