package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imports are the packages that a snippet may use without saying so, by name.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log",
	"os": "os", "slog": "log/slog", "time": "time",

	"stint":      "github.com/stintlimit/stint",
	"httplimit":  "github.com/stintlimit/stint/httplimit",
	"memstore":   "github.com/stintlimit/stint/memstore",
	"redisstore": "github.com/stintlimit/stint/redisstore",
	"storetest":  "github.com/stintlimit/stint/storetest",
	"subject":    "github.com/stintlimit/stint/subject",
}

// variables are what a snippet may use without making it, and their types.
var variables = map[string]string{"hello": "http.Handler"}

var (
	selector = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	remark   = regexp.MustCompile(`//.*`)
)

// compile builds a Go block as a package of this module. A block that is not a
// whole file is the body of a function.
func compile(t *testing.T, b block) {
	t.Helper()
	source := b.text
	if !strings.HasPrefix(source, "package ") && !strings.Contains(source, "\npackage ") {
		source = wrap(source)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "snippet.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	// The overlay puts the file into this module without writing there.
	virtual, err := filepath.Abs(filepath.Join("internal", fmt.Sprintf("snippet%d", b.line), "snippet.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {virtual: file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-o", os.DevNull, "-overlay", filepath.Join(dir, "overlay.json"),
		"./"+filepath.ToSlash(filepath.Join("internal", filepath.Base(filepath.Dir(virtual))))).CombinedOutput()
	if err != nil {
		t.Errorf("%s does not compile: %v\n%s\n%s", b, err, out, source)
	}
}

// wrap makes a file of statements, or of declarations.
func wrap(text string) string {
	for name, kind := range variables {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			text = "var " + name + " " + kind + "\n" + text
		}
	}
	var needed []string
	for _, m := range selector.FindAllStringSubmatch(remark.ReplaceAllString(text, ""), -1) {
		if path, known := imports[m[1]]; known && !slices.Contains(needed, path) {
			needed = append(needed, path)
		}
	}
	var file strings.Builder
	file.WriteString("package snippet\n\n")
	for _, path := range needed {
		fmt.Fprintf(&file, "import %q\n", path)
	}
	if regexp.MustCompile(`(?m)^(func|type|const) `).MatchString(text) {
		file.WriteString(text)
	} else {
		file.WriteString("func _() {\n" + text + "}\n")
	}
	return file.String()
}

// The README's five lines are those of the runnable example, which says what
// they print.
func TestReadmeShowsTheExample(t *testing.T) {
	example, err := os.ReadFile("../httplimit/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range parse(t, "README.md", "../README.md") {
		if b.lang != "go" {
			continue
		}
		for _, line := range b.lines() {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "log.") && !strings.Contains(string(example), line) {
				t.Errorf("%s: not in httplimit's Example: %s", b, line)
			}
		}
		return
	}
	t.Error("README.md shows no Go")
}
