package stint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/stintlimit/stint"

// layer is what a room may import: rooms of this module ("." is the root), and
// modules from outside.
type layer struct {
	room    string
	imports []string
	outside []string
}

// layers lists every room. Lower rooms come first, and no arrow turns back. A
// package that is not here fails the test: it needs a place before others
// build on it.
var layers = []layer{
	{".", nil, nil},
	{"internal/algorithm", []string{"."}, nil},
	{"internal/clientip", nil, []string{"github.com/gaissmai/bart"}},
	{"internal/muxpattern", nil, nil},
	{"internal/quota", []string{"."}, []string{"github.com/dunglas/httpsfv"}},
	{"internal/chaos", []string{"."}, []string{"github.com/anishathalye/porcupine"}},
	{"internal/redistest", nil, nil},
	{"subject", []string{"."}, nil},

	{"memstore", []string{".", "internal/algorithm"}, nil},
	{"breaker", []string{"."}, []string{"github.com/sony/gobreaker"}},
	{"redisstore", []string{"."}, []string{"github.com/redis/go-redis/v9"}},
	{"storetest", []string{"."}, []string{"github.com/google/go-cmp"}},

	{"internal/edge", []string{".", "subject", "internal/clientip", "internal/muxpattern"}, []string{"github.com/gaissmai/bart"}},
	{"httplimit", []string{".", "subject", "internal/clientip", "internal/edge", "internal/quota"}, nil},

	{"cmd/stint/internal/config", []string{".", "subject", "internal/muxpattern"}, []string{"go.yaml.in/yaml/v3"}},
	{"cmd/stint/internal/telemetry", []string{"."}, []string{"github.com/prometheus/client_golang"}},
	{"cmd/stint/internal/gateway", []string{".", "httplimit", "internal/edge", "internal/quota"}, []string{"github.com/dunglas/httpsfv"}},
	{
		"cmd/stint/internal/app",
		[]string{
			".", "subject", "memstore", "breaker", "redisstore", "httplimit", "internal/clientip", "internal/edge",
			"cmd/stint/internal/config", "cmd/stint/internal/telemetry", "cmd/stint/internal/gateway",
		},
		nil,
	},
	{"cmd/stint/internal/doctor", []string{"redisstore"}, nil},
	{
		"cmd/stint",
		[]string{"subject", "redisstore", "cmd/stint/internal/config", "cmd/stint/internal/app", "cmd/stint/internal/doctor"},
		[]string{"github.com/spf13/cobra"},
	},

	{"docs", nil, nil},
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Name, Doc              string
	Imports, TestImports, XTestImports []string
}

// packages lists every package of this module.
func packages(t *testing.T) (list []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Doc,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// room names a package of this module as layers does; ok is false for others.
func room(importPath string) (name string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// standard reports whether an import is of the standard library: it has no dot
// in its first element.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func TestLayers(t *testing.T) {
	for i, l := range layers {
		for _, lower := range l.imports {
			if placeOf(layers[:i], lower) < 0 {
				t.Errorf("%s may import %s, which is not below it", l.room, lower)
			}
		}
	}
	seen := make([]bool, len(layers))
	for _, p := range packages(t) {
		name, _ := room(p.ImportPath)
		place := placeOf(layers, name)
		if place < 0 {
			t.Errorf("%s has no place in layers", name)
			continue
		}
		seen[place] = true
		for _, path := range p.Imports {
			if !layers[place].permits(path) {
				t.Errorf("%s must not import %s", name, path)
			}
		}
	}
	for place, there := range seen {
		if !there {
			t.Errorf("layers has a place for %s, which is not there", layers[place].room)
		}
	}
}

func placeOf(list []layer, name string) int {
	return slices.IndexFunc(list, func(l layer) bool { return l.room == name })
}

// permits reports whether the room may import a package.
func (l *layer) permits(path string) bool {
	if name, ours := room(path); ours {
		return slices.Contains(l.imports, name)
	}
	return standard(path) || slices.ContainsFunc(l.outside, func(m string) bool {
		return path == m || strings.HasPrefix(path, m+"/")
	})
}

// TestNothingOutsideTheServerImportsIt, not even a test.
func TestNothingOutsideTheServerImportsIt(t *testing.T) {
	for _, p := range packages(t) {
		if name, _ := room(p.ImportPath); strings.HasPrefix(name, "cmd/") {
			continue
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.HasPrefix(path, module+"/cmd/") {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

func TestRootDependsOnTheStandardLibraryOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if deps := strings.Fields(string(out)); !slices.Equal(deps, []string{module}) {
		t.Errorf("the root package depends on %v", deps)
	}
}

// TestEveryPackageSaysWhatItIs, in the words that go doc expects.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: its comment begins %q, not %q", p.ImportPath, p.Doc, want+"…")
		}
	}
}
