package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/bad; read the diff")

const wantPrefix = "# want: "

// TestBadFiles holds every file to the lines at its head: all problems, and no
// others, each with its place.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d bad files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				data = rewriteWants(t, file, data)
			}
			want, _ := splitWants(data)
			got := problemLines(t, file, data)
			if len(want) == 0 {
				t.Error("the file expects nothing")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}

func splitWants(data []byte) (wants []string, rest []byte) {
	text := string(data)
	for strings.HasPrefix(text, wantPrefix) {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		wants = append(wants, strings.TrimPrefix(line, wantPrefix))
	}
	return wants, []byte(text)
}

// problemLines returns what is wrong with data as want lines say it.
func problemLines(t *testing.T, file string, data []byte) []string {
	t.Helper()
	environment := map[string]string{"STINT_TEST_EMPTY": " ", "STINT_TEST_SHORT": "c2hvcnQ="}
	_, err := parse(file, data, Overrides{}, func(name string) (string, bool) {
		v, ok := environment[name]
		return v, ok
	})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a list of problems", err)
	}
	var lines []string
	for _, p := range e.Problems {
		if p.File != file {
			t.Errorf("problem in file %q", p.File)
		}
		line := fmt.Sprintf("%d:%d: ", p.Line, p.Column)
		if p.Path != "" {
			line += p.Path + ": "
		}
		lines = append(lines, line+p.Message)
	}
	return lines
}

func rewriteWants(t *testing.T, file string, data []byte) []byte {
	t.Helper()
	_, rest := splitWants(data)
	text := string(rest)
	for range 2 { // the second time with as many lines above as there will be
		lines := problemLines(t, file, []byte(text))
		text = wantPrefix + strings.Join(lines, "\n"+wantPrefix) + "\n" + string(rest)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}
