package config

import (
	"fmt"
	"strings"
)

// suggest returns a sentence that helps somebody who wrote word where one of
// known was expected: the nearest, or all of them.
func suggest(word string, known []string, all string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), k, least); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return all + " " + strings.Join(known, ", ")
}

// distance counts the letters to insert, remove, change or swap with their
// neighbour to get from a to b; it may return any number ≥ most instead.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var before, last, row []int
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

func keysOf(settings []setting) []string {
	var keys []string
	for _, s := range settings {
		if s.refuse == "" {
			keys = append(keys, s.key)
		}
	}
	return keys
}
