// Package doctor shows what an inspection of the store found: a line a check
// for people, or JSON for programs.
//
// It connects to nothing and judges nothing: package redisstore does.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stintlimit/stint/redisstore"
)

// Failed counts the findings because of which a server does not limit as it
// is meant to.
func Failed(findings []redisstore.Finding) int { return count(findings, redisstore.StatusFail) }

func count(findings []redisstore.Finding, s redisstore.Status) (n int) {
	for _, f := range findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// WriteText writes a line a finding and one that counts them. Servers are named
// only if there are several.
func WriteText(w io.Writer, findings []redisstore.Finding) error {
	width, nodes := 0, []string{}
	for _, f := range findings {
		width = max(width, len(f.Check))
		if f.Node != "" && !slices.Contains(nodes, f.Node) {
			nodes = append(nodes, f.Node)
		}
	}
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%-4s  %-*s  ", f.Status, width, f.Check)
		if f.Node != "" && len(nodes) > 1 {
			fmt.Fprintf(&text, "%s: ", f.Node)
		}
		text.WriteString(oneLine(f.Detail))
		if f.Advice != "" {
			text.WriteString(" → " + oneLine(f.Advice))
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%d checks: %d pass, %d info, %d warn, %d fail\n", len(findings),
		count(findings, redisstore.StatusPass), count(findings, redisstore.StatusInfo),
		count(findings, redisstore.StatusWarn), count(findings, redisstore.StatusFail))
	_, err := io.WriteString(w, text.String())
	return err
}

// oneLine keeps what a server says from looking like another finding, and from
// steering a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// finding is one element of the JSON. Its names stay as they are.
type finding struct {
	Check  string `json:"check"`
	Node   string `json:"node,omitempty"`
	Status string `json:"status"` // PASS, INFO, WARN or FAIL
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

// WriteJSON writes {"failed": n, "findings": […]}, in the order of the text.
func WriteJSON(w io.Writer, findings []redisstore.Finding) error {
	report := struct {
		Failed   int       `json:"failed"`
		Findings []finding `json:"findings"`
	}{Failed(findings), []finding{}}
	for _, f := range findings {
		report.Findings = append(report.Findings, finding{f.Check, f.Node, f.Status.String(), f.Detail, f.Advice})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
