package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// FuzzParse: no input panics; what is refused is refused at a place in the
// file; what is accepted makes a limiter.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "example.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("testdata/good/fuzz.yaml", data, Overrides{}, testEnv)
		if err != nil {
			checkPlaces(t, err, strings.Count(breaks.Replace(string(data)), "\n")+1)
			return
		}
		if _, err := stint.New(memstore.New(memstore.Config{}), c.Policies, stint.WithBudget(c.Deadline)); err != nil {
			t.Errorf("accepted, and no limiter: %v", err)
		}
		if (c.Store.Memory == nil) == (c.Store.Redis == nil) {
			t.Error("not exactly one store")
		}
	})
}

// breaks are what ends a line in YAML 1.1.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func checkPlaces(t *testing.T, err error, lines int) {
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("refused without a problem: %v", err)
	}
	for _, p := range e.Problems {
		if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
			t.Errorf("no place in %d lines: %v", lines, p)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"1h30m", "10x", "1m30", "-1s", "60", "", "36500d", "1d1h1m1s1ms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, wrong := parseDuration(s)
		if wrong != "" {
			return
		}
		if again, wrong := parseDuration(formatDuration(d)); wrong != "" || again != d {
			t.Errorf("%q is %v, written %q, read %v %s", s, d, formatDuration(d), again, wrong)
		}
	})
}
