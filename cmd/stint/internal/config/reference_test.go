package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint/subject"
)

const reference = "../../../../docs/configuration.md"

// TestReferenceIsTheSchema holds the tables of the reference to the schema:
// the same keys with the same type, range and default. Only the last column
// is free.
func TestReferenceIsTheSchema(t *testing.T) {
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 5 && strings.HasPrefix(cells[0], "| `") {
			got = append(got, strings.Join(cells[:4], " | "))
			if len(strings.TrimSuffix(cells[4], " |")) < 4 {
				t.Errorf("nothing says what it means: %s", line)
			}
		}
	}
	var want []string
	for _, r := range rows("", root(new(draft)).inner) {
		want = append(want, "| `"+r.path+"` | "+r.kind+" | "+r.bounds+" | "+r.meansWithout())
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs from the schema (-schema +page):\n%s", reference, diff)
	}
}

// TestEveryBlockOfTheReferenceLoads reads the page's YAML as a user would.
func TestEveryBlockOfTheReferenceLoads(t *testing.T) {
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("only %d blocks", len(blocks))
	}
	dir := t.TempDir()
	for _, name := range []string{"key1.txt", "secret.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(subject.GenerateKey()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ca.pem", "client.pem", "client.key"} {
		text, err := os.ReadFile(filepath.Join("testdata/good/secrets", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	environment := func(string) (string, bool) { return subject.GenerateKey(), true }
	for i, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		if _, err := parse(filepath.Join(dir, "stint.yaml"), []byte(b), Overrides{}, environment); err != nil {
			t.Errorf("block %d:\n%s\n%v", i, b, err)
		}
	}
}

type row struct {
	path string
	setting
}

func (r row) meansWithout() string {
	switch {
	case r.note != "":
		return r.note
	case r.fallback != "":
		return "`" + r.fallback + "`"
	}
	return "**required**"
}

func rows(path string, settings []setting) []row {
	var all []row
	for _, s := range settings {
		if s.refuse != "" {
			continue
		}
		if s.bounds == "" {
			s.bounds = "–"
		}
		at := join(path, s.key)
		all = append(all, row{at, s})
		if s.list {
			at += "[]"
		}
		all = append(all, rows(at, s.inner)...)
	}
	return all
}
