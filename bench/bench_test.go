package bench

import (
	"strings"
	"testing"

	"github.com/stintlimit/stint/internal/redistest"
)

// Every measurement still runs: it says nothing about speed at this size.
func TestTables(t *testing.T) {
	size := Size{Rounds: 1, Operations: 640, Keys: 100}
	for name, measure := range map[string]func() (Table, error){
		"memory": func() (Table, error) { return Memory(size) },
		"http":   func() (Table, error) { return HTTP(size) },
		"redis":  func() (Table, error) { return Redis(size, redistest.Start(t).Addr()) },
	} {
		t.Run(name, func(t *testing.T) {
			table, err := measure()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range table.Rows {
				if len(r.Cells) != len(table.Columns)-1 {
					t.Errorf("row %q has %d cells under %d columns", r.Name, len(r.Cells), len(table.Columns))
				}
			}
			if got := table.String(); !strings.Contains(got, "|---|---:|") {
				t.Errorf("no Markdown:\n%s", got)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}
