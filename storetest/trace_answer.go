package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintlimit/stint"
)

// figureNames are what a trace can expect of a decision. Times are in ms.
var figureNames = map[string]func(*stint.Decision) int64{
	"remaining": func(d *stint.Decision) int64 { return d.Remaining },
	"limit":     func(d *stint.Decision) int64 { return int64(d.Limit) },
	"retry":     func(d *stint.Decision) int64 { return d.RetryAfter.Milliseconds() },
	"more":      func(d *stint.Decision) int64 { return d.MoreAfter.Milliseconds() },
	"reset":     func(d *stint.Decision) int64 { return d.ResetAfter.Milliseconds() },
	"now":       func(d *stint.Decision) int64 { return d.At - epoch },
}

func isCount(name string) bool { return name == "remaining" || name == "limit" }

func showFigure(name string, value int64) string {
	if isCount(name) {
		return strconv.FormatInt(value, 10)
	}
	return (time.Duration(value) * time.Millisecond).String()
}

var outcomeNames = map[string]stint.Outcome{
	"allowed": stint.Allowed, "denied": stint.Denied, "shadow_denied": stint.ShadowDenied, "shadow_failed": stint.ShadowFailed,
}

// reasons are those that a store can be brought to by its port alone.
var reasons = []stint.Reason{stint.EvaluationMismatch, stint.AdmissionRejected, stint.ClockUnsafe}

// parseAnswer reads "error <reason>", "<decision>" of one charge, or
// "allowed|denied: [binding=<charge>] <decision>, …" of several.
func (s *step) parseAnswer(words []string, charges int) error {
	if words[0] == "error" {
		if len(words) != 2 || !slices.Contains(reasons, stint.Reason(words[1])) {
			return fmt.Errorf("%q: error and one of %v", strings.Join(words, " "), reasons)
		}
		s.reason = stint.Reason(words[1])
		return nil
	}
	whole, isGroup := strings.CutSuffix(words[0], ":")
	if isGroup {
		words = words[1:]
		if len(words) > 0 && strings.HasPrefix(words[0], "binding=") {
			n, err := strconv.Atoi(words[0][len("binding="):])
			if err != nil || n < 0 || n >= charges {
				return fmt.Errorf("%q: a charge, 0 to %d", words[0], charges-1)
			}
			s.binding, words = n, words[1:]
		}
	}
	s.allowed = whole != "denied"
	for part := range strings.SplitSeq(strings.Join(words, " "), ",") {
		w, err := parseWant(strings.Fields(part))
		if err != nil {
			return err
		}
		s.wants = append(s.wants, w)
	}
	if isGroup == (charges == 1) || len(s.wants) != charges {
		return fmt.Errorf("%d decisions on %d charges; several are written allowed: or denied: and a decision each", len(s.wants), charges)
	}
	return nil
}

func parseWant(words []string) (want, error) {
	if len(words) == 0 {
		return want{}, errors.New("an empty decision")
	}
	outcome, ok := outcomeNames[words[0]]
	if !ok {
		return want{}, fmt.Errorf("%q is no outcome", words[0])
	}
	w := want{outcome: outcome}
	for _, word := range words[1:] {
		if word == "replayed" {
			w.replayed = true
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		if figureNames[name] == nil {
			return want{}, fmt.Errorf("%q is no figure: remaining, limit, retry, more, reset, now or replayed", name)
		}
		f := figure{name: name}
		var err error
		if isCount(name) {
			f.value, err = strconv.ParseInt(value, 10, 64)
		} else {
			f.value, err = parseTime(value)
		}
		if err != nil {
			return want{}, fmt.Errorf("%s: %w", name, err)
		}
		w.figures = append(w.figures, f)
	}
	return w, nil
}
