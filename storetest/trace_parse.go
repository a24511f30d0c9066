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

// parseAt reads "<time> take|peek|refund <charges> [id=<id>] <expectation>".
func (p *parser) parseAt(s *step, text string) error {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return fmt.Errorf("at %q: a time, take, peek or refund, charges and an answer", text)
	}
	now, err := parseTime(fields[0])
	if err != nil {
		return err
	}
	op, ok := map[string]stint.Op{"take": stint.Take, "peek": stint.Peek, "refund": stint.Refund}[fields[1]]
	if !ok {
		return fmt.Errorf("%q is no evaluation: take, peek or refund", fields[1])
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
	if op == stint.Refund && (eid.IsZero() || charges[0].Policy.Dedup.Off) {
		return errors.New("a refund needs an id, and a first policy that remembers it")
	}
	s.group = func() stint.Group { return newGroup(op, eid, epoch+now, charges) }
	return s.parseAnswer(answer, len(charges))
}

// parseCharges reads "<subject>[@<policy>] <cost> [spent=<time>], …".
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
		amount, receipt, err := parseReceipt(op, amount)
		if err != nil {
			return nil, err
		}
		cost, err := strconv.ParseInt(amount, 10, 64)
		least := int64(1)
		if op == stint.Peek {
			least = 0
		}
		if err != nil || cost < least || cost > pol.MaximumCost {
			return nil, fmt.Errorf("%q is no cost: %d to %d", amount, least, pol.MaximumCost)
		}
		c := charge(pol, name, cost)
		c.At = receipt
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

// parseReceipt cuts off when a refund says that the charge was spent; 0: it
// does not say.
func parseReceipt(op stint.Op, amount string) (rest string, at int64, err error) {
	rest, text, found := strings.Cut(amount, " spent=")
	if !found {
		return amount, 0, nil
	}
	if op != stint.Refund {
		return "", 0, fmt.Errorf("%q: only a refund says when something was spent", amount)
	}
	at, err = parseTime(text)
	return rest, epoch + at, err
}

// parseTime reads an offset from the epoch of traces, in ms.
func parseTime(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d%time.Millisecond != 0 || d > stint.MaxDuration || d.Milliseconds() < -epoch {
		return 0, fmt.Errorf("%q is no time: such as 1.5s or 24h, in whole milliseconds", text)
	}
	return d.Milliseconds(), nil
}
