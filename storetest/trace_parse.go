package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintlimit/stint"
)

// ParseTrace reads a trace. name stands for it in errors, which say
// "name:line:" and what is wrong; the first one is returned.
func ParseTrace(name, text string) (*Trace, error) {
	p := parser{trace: &Trace{Name: name}, policies: map[string]*stint.Policy{}}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if err := p.parse(i+1, strings.Join(strings.Fields(line), " ")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	return p.trace, nil
}

type parser struct {
	trace    *Trace
	policies map[string]*stint.Policy
	ids      []string // of policies, in order
}

func (p *parser) parse(number int, line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "":
		return nil
	case "policy":
		return p.parsePolicy(rest)
	case "forget":
		if rest != "" {
			return fmt.Errorf("forget takes nothing, not %q", rest)
		}
		p.trace.steps = append(p.trace.steps, step{line: number, text: line, forget: true})
		return nil
	case "at":
		s := step{line: number, text: line, binding: -1}
		if err := p.parseAt(&s, rest); err != nil {
			return err
		}
		p.trace.steps = append(p.trace.steps, s)
		return nil
	}
	return fmt.Errorf("%q is no line: policy, at or forget", verb)
}

// answers are the words that end the charges and begin what is expected.
var answers = []string{"allowed", "allowed:", "denied", "denied:", "shadow_denied", "shadow_failed", "error"}

// parseAt reads "<time> take|peek <charges> [id=<id>] <expectation>".
func (p *parser) parseAt(s *step, text string) error {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return fmt.Errorf("at %q: a time, take or peek, charges and an answer", text)
	}
	now, err := parseTime(fields[0])
	if err != nil {
		return err
	}
	op, ok := map[string]stint.Op{"take": stint.Take, "peek": stint.Peek}[fields[1]]
	if !ok {
		return fmt.Errorf("%q is no evaluation: take or peek", fields[1])
	}
	fields = fields[2:]
	end := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(answers, f) })
	if end < 0 {
		return fmt.Errorf("no answer: one of %s", strings.Join(answers, ", "))
	}
	asked, answer := fields[:end], fields[end:]
	var eid stint.EvaluationID
	if n := len(asked) - 1; n >= 0 && strings.HasPrefix(asked[n], "id=") {
		eid, asked = id(asked[n]), asked[:n]
	}
	charges, err := p.parseCharges(op, strings.Join(asked, " "))
	if err != nil {
		return err
	}
	s.group = func() stint.Group { return newGroup(op, eid, epoch+now, charges) }
	return s.parseAnswer(answer, len(charges))
}

// parseCharges reads "<subject>[@<policy>] <cost>, …".
func (p *parser) parseCharges(op stint.Op, text string) ([]stint.Charge, error) {
	var charges []stint.Charge
	for part := range strings.SplitSeq(text, ",") {
		who, amount, _ := strings.Cut(strings.TrimSpace(part), " ")
		name, of, named := strings.Cut(who, "@")
		if !named {
			if len(p.ids) != 1 {
				return nil, fmt.Errorf("%q: which of %d policies? subject@policy", who, len(p.ids))
			}
			of = p.ids[0]
		}
		pol := p.policies[of]
		if pol == nil {
			return nil, fmt.Errorf("no policy is named %q", of)
		}
		if name == "" || len(name) > 16 {
			return nil, fmt.Errorf("%q is no subject: 1 to 16 bytes", name)
		}
		cost, err := strconv.ParseInt(amount, 10, 64)
		least := map[stint.Op]int64{stint.Take: 1}[op]
		if err != nil || cost < least || cost > pol.MaximumCost {
			return nil, fmt.Errorf("%q is no cost: %d to %d", amount, least, pol.MaximumCost)
		}
		c := charge(pol, name, cost)
		if slices.ContainsFunc(charges, func(o stint.Charge) bool { return o.Policy == c.Policy && o.Subject == c.Subject }) {
			return nil, fmt.Errorf("%q is charged twice", who)
		}
		charges = append(charges, c)
	}
	if len(charges) > stint.MaxCharges {
		return nil, fmt.Errorf("%d charges: at most %d", len(charges), stint.MaxCharges)
	}
	return charges, nil
}

// parseTime reads an offset from the epoch of traces, in ms.
func parseTime(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d%time.Millisecond != 0 || d > stint.MaxDuration || d.Milliseconds() < -epoch {
		return 0, fmt.Errorf("%q is no time: such as 1.5s or 24h, in whole milliseconds", text)
	}
	return d.Milliseconds(), nil
}
