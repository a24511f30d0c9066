package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Row is one contestant: its name, and its medians by column.
type Row struct {
	Name  string
	Cells []string
}

// Table is a result that prints as Markdown.
type Table struct {
	Title   string
	Columns []string // the first is over the names
	Rows    []Row
	Notes   []string
}

// String returns the table as Markdown.
func (t Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| %s |\n|---|", t.Title, strings.Join(t.Columns, " | "))
	b.WriteString(strings.Repeat("---:|", len(t.Columns)-1) + "\n")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Name, strings.Join(r.Cells, " | "))
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

// median returns the middle of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// contestant measures one round.
type contestant struct {
	name string
	run  func() (map[string]float64, error)
}

// measure lets the contestants take turns, each second round in reverse order,
// and returns for each the median of every figure.
func measure(rounds int, all []contestant) ([]map[string]float64, error) {
	samples := make([]map[string][]float64, len(all))
	order := make([]int, len(all))
	for i := range all {
		samples[i] = map[string][]float64{}
		order[i] = i
	}
	for range rounds {
		for _, i := range order {
			figures, err := all[i].run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			for name, v := range figures {
				samples[i][name] = append(samples[i][name], v)
			}
		}
		slices.Reverse(order)
	}
	medians := make([]map[string]float64, len(all))
	for i, s := range samples {
		medians[i] = map[string]float64{}
		for name, values := range s {
			medians[i][name] = median(values)
		}
	}
	return medians, nil
}

func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f ×", a/b)
}
