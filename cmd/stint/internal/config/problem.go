package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	File    string // or the flag that overrides the file
	Line    int    // from 1; 0 for a flag
	Column  int    // from 1, in characters; 0 for a flag
	Path    string // such as routes[0].charge[1].policy; empty for the whole file
	Message string // what is wrong, and what would be right
}

// String returns "file:line:column: path: message".
func (p Problem) String() string {
	text := p.File
	if p.Line > 0 {
		text = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	if p.Path != "" {
		text += ": " + p.Path
	}
	return text + ": " + p.Message
}

// Error is everything wrong with a configuration, in the order of its places.
type Error struct{ Problems []Problem }

// Error returns one line a problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func newError(problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: slices.Compact(problems)}
}
