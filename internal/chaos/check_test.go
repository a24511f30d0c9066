package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stintlimit/stint"
)

// told is a history written by hand. Instants are ms since begin.
type told struct {
	*testing.T
	History
}

// begin is a multiple of every window in Policies.
const begin = int64(1_700_000_000_000 / 9_000 * 9_000)

func tell(t *testing.T) *told { return &told{T: t} }

// call adds a take that is answered 10 ms later; its deadline is 100 ms away.
func (h *told) call(at int64, policy string, cost int64) *Operation {
	o := &Operation{
		Call: Call{
			Process: 1, Number: len(h.Operations) + 1, Clock: ServerClock,
			Now: begin + at, Called: (begin + at) * 1000, Deadline: (begin + at + 100) * 1000,
			Charges: []Charge{{Counter: policy + "-counter", Policy: policy, Cost: cost}},
		},
	}
	o.Answer = &Answer{Process: 1, Number: o.Number, Returned: (begin + at + 10) * 1000}
	h.Operations = append(h.Operations, o)
	return o
}

func (o *Operation) decides(outcome string, remaining int64) *Operation {
	o.Answer.Allowed = outcome == "allowed"
	o.Answer.Decisions = []Decision{{Outcome: outcome, At: o.Now + 5, Remaining: remaining}}
	return o
}

func (o *Operation) allowed(remaining int64) *Operation { return o.decides("allowed", remaining) }
func (o *Operation) refused(remaining int64) *Operation { return o.decides("denied", remaining) }

func (o *Operation) fails(r stint.Reason) *Operation {
	o.Answer.Reason = r
	return o
}

func (o *Operation) named(id string) *Operation {
	o.ID = id
	return o
}

// replays makes the answer that of an earlier operation.
func (o *Operation) replays(earlier *Operation) *Operation {
	o.ID = earlier.ID
	o.Answer.Allowed = earlier.Answer.Allowed
	o.Answer.Decisions = slices.Clone(earlier.Answer.Decisions)
	for i := range o.Answer.Decisions {
		o.Answer.Decisions[i].Replayed = true
	}
	return o
}

func (h *told) loss(from, to int64) {
	h.Losses = append(h.Losses, Loss{What: "told", From: (begin + from) * 1000, To: (begin + to) * 1000})
}

func (h *told) audit(at int64, policy string, remaining, ttl int64) {
	h.Audits = append(h.Audits, Audit{
		Counter: policy + "-counter", Policy: policy,
		Called: (begin + at) * 1000, Returned: (begin + at + 1) * 1000, Remaining: remaining, TTL: ttl,
	})
}

func frozen(t testing.TB) []*stint.Policy {
	t.Helper()
	list, err := Frozen()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// want checks the history: exactly this rule is broken, or none.
func (h *told) want(rule string) *Report {
	h.Helper()
	r := Check(&h.History, frozen(h))
	got := strings.Join(r.Broken(), "; ")
	if got != rule {
		h.Errorf("broken: %q, want %q\n%v", got, rule, r)
	}
	return r
}

const (
	spentRule = "what was not admitted was not spent"
	keptRule  = "what was admitted is kept"
	onceRule  = "an id is charged once"
	orderRule = "one order explains every answer"
	clockRule = "an unsafe clock decides nothing"
	ttlRule   = "every key ends"
	formRule  = "an answer is one thing"
)

const soloLimit, soloTTL = 150, 1_000_000_000

func TestTheSumsOfALedger(t *testing.T) {
	for _, c := range []struct {
		name   string
		tell   func(h *told)
		broken string
	}{
		{"all that was admitted, and no more", func(h *told) {
			h.call(0, Solo, 100).allowed(50)
			h.call(20, Solo, 60).refused(50)
			h.call(40, Solo, 50).allowed(0)
			h.audit(1000, Solo, 0, soloTTL)
		}, ""},
		{"a denial that spent", func(h *told) {
			h.call(0, Joint, 300).allowed(100)
			h.call(20, Joint, 200).refused(100)
			h.audit(1000, Joint, 0, soloTTL)
		}, spentRule + "; " + orderRule},
		{"an admission that was lost", func(h *told) {
			h.call(0, Solo, 100).allowed(50)
			h.audit(1000, Solo, 150, -2)
		}, orderRule + "; " + keptRule},
		{"an unknown outcome that spent", func(h *told) {
			h.call(0, Solo, 100).fails(stint.OutcomeUnknown)
			h.audit(1000, Solo, 50, soloTTL)
		}, ""},
		{"an unknown outcome that did not", func(h *told) {
			h.call(0, Solo, 100).fails(stint.OutcomeUnknown)
			h.audit(1000, Solo, 150, -2)
		}, ""},
		{"an unknown outcome that spent half", func(h *told) {
			h.call(0, Solo, 100).fails(stint.OutcomeUnknown)
			h.audit(1000, Solo, 100, soloTTL)
		}, orderRule},
		{"a call of a process that died", func(h *told) {
			h.call(0, Solo, 100).Answer = nil
			h.audit(1000, Solo, 50, soloTTL)
		}, ""},
		{"an unknown outcome that spent twice", func(h *told) {
			h.call(0, Solo, 50).fails(stint.OutcomeUnknown)
			h.audit(1000, Solo, 50, soloTTL)
		}, orderRule + "; " + spentRule},
		{"nothing of what was asked", func(h *told) {
			h.call(0, Solo, 10).allowed(140)
			h.audit(1000, Solo, 140, soloTTL)
			h.Operations[0].Charges[0].Counter = "another"
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tell(t)
			c.tell(h)
			h.want(sorted(c.broken))
		})
	}
	for _, reason := range []stint.Reason{stint.NoMutation, stint.BeforeSend, stint.ClockUnsafe, stint.AdmissionRejected} {
		t.Run("a confirmed refusal that spent: "+string(reason), func(t *testing.T) {
			h := tell(t)
			h.call(0, Solo, 10).fails(reason)
			h.audit(1000, Solo, 150, -2)
			h.want("")
			h.Audits[0].Remaining = 140
			h.want(sorted(orderRule + "; " + spentRule))
		})
	}
}

func sorted(rules string) string {
	list := strings.Split(rules, "; ")
	slices.Sort(list)
	return strings.Join(list, "; ")
}

func TestARepeatedId(t *testing.T) {
	for _, c := range []struct {
		name   string
		tell   func(h *told)
		broken string
	}{
		{"is replayed", func(h *told) {
			first := h.call(0, Solo, 10).named("a").allowed(140)
			h.call(200, Solo, 10).replays(first)
			h.audit(1000, Solo, 140, soloTTL)
		}, ""},
		{"is charged twice", func(h *told) {
			h.call(0, Solo, 10).named("a").allowed(140)
			h.call(200, Solo, 10).named("a").allowed(130)
			h.audit(1000, Solo, 130, soloTTL)
		}, onceRule + "; " + orderRule},
		{"is charged again after its record was lost", func(h *told) {
			h.call(0, Solo, 10).named("a").allowed(140)
			h.loss(50, 60)
			h.call(200, Solo, 10).named("a").allowed(140)
			h.audit(1000, Solo, 140, soloTTL)
		}, ""},
		{"is charged a third time after one loss", func(h *told) {
			h.call(0, Solo, 10).named("a").allowed(140)
			h.loss(50, 60)
			h.call(200, Solo, 10).named("a").allowed(140)
			h.call(300, Solo, 10).named("a").allowed(130)
		}, onceRule},
		{"finds that the unknown outcome spent", func(h *told) {
			h.call(0, Solo, 10).named("a").fails(stint.OutcomeUnknown)
			first := h.call(0, Solo, 10).named("a").allowed(140)
			h.call(200, Solo, 10).replays(first)
			h.Operations = slices.Delete(h.Operations, 1, 2)
			h.audit(1000, Solo, 140, soloTTL)
		}, ""},
		{"finds that it did not, and then it did", func(h *told) {
			h.call(0, Solo, 145).allowed(5)
			h.call(20, Solo, 10).named("a").fails(stint.OutcomeUnknown)
			h.call(200, Solo, 10).named("a").refused(5)
			h.audit(1000, Solo, 0, soloTTL)
		}, orderRule + "; " + spentRule},
		{"is denied while the unknown call may still run", func(h *told) {
			h.call(0, Joint, 10).named("a").fails(stint.OutcomeUnknown)
			h.call(20, Joint, 10).named("a").refused(400)
			h.audit(1000, Joint, 390, soloTTL)
		}, orderRule},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tell(t)
			c.tell(h)
			h.want(sorted(c.broken))
		})
	}
}

func TestTheBoundsOfEachAlgorithm(t *testing.T) {
	for _, c := range []struct {
		name   string
		tell   func(h *told)
		broken string
	}{
		{"a fixed window, full, and the next", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.call(500, Fixed, 20).allowed(0)
		}, ""},
		{"a fixed window, overfull", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.call(490, Fixed, 1).allowed(0)
		}, boundRule},
		{"a second budget after a loss", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.loss(100, 110)
			h.call(200, Fixed, 20).allowed(0)
		}, ""},
		{"a third after one loss", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.loss(100, 110)
			h.call(200, Fixed, 20).allowed(0)
			h.call(300, Fixed, 20).allowed(0)
		}, boundRule},
		{"more than one budget before the loss", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.call(20, Fixed, 5).allowed(0)
			h.loss(100, 110)
			h.call(200, Fixed, 5).allowed(15)
		}, boundRule},
		{"during the loss, on either side of it", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.call(95, Fixed, 20).allowed(0)
			h.loss(100, 110)
		}, ""},
		{"a sliding counter, twice its limit in an interval", func(h *told) {
			h.call(450, Sliding, 20).allowed(0)
			h.call(510, Sliding, 20).allowed(0)
		}, ""},
		{"a sliding counter, more than that", func(h *told) {
			h.call(450, Sliding, 20).allowed(0)
			h.call(510, Sliding, 20).allowed(0)
			h.call(900, Sliding, 1).allowed(0)
		}, boundRule},
		{"a bucket, full and refilled", func(h *told) {
			h.call(0, Bucket, 20).allowed(0)
			h.call(150, Bucket, 5).allowed(0)
			h.call(300, Bucket, 5).allowed(0)
		}, ""},
		{"a bucket that refills at once", func(h *told) {
			h.call(0, Bucket, 20).allowed(0)
			h.call(10, Bucket, 5).allowed(0)
		}, ""},
		{"a bucket that refills twice at once", func(h *told) {
			h.call(0, Bucket, 20).allowed(0)
			h.call(10, Bucket, 5).allowed(0)
			h.call(20, Bucket, 5).allowed(0)
		}, boundRule},
		{"one of several limits", func(h *told) {
			h.call(0, Several, 15).allowed(0)
			h.call(500, Several, 15).allowed(0)
			h.call(900, Several, 1).allowed(0)
		}, boundRule},
		{"what was denied counts for nothing", func(h *told) {
			h.call(0, Fixed, 20).allowed(0)
			h.call(20, Fixed, 20).refused(0)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tell(t)
			c.tell(h)
			h.want(c.broken)
		})
	}
}

func TestClocks(t *testing.T) {
	for _, c := range []struct {
		name   string
		clock  string
		now    int64 // the caller's, ms from the call
		at     int64 // effective, ms from the call
		broken string
	}{
		{"the server's", ServerClock, 50_000, 5, ""},
		{"the server's, raised", ServerClock, 0, 1000, ""},
		{"the server's, raised too far", ServerClock, 0, 1100, clockRule},
		{"behind the server's", ServerClock, 0, -5, clockRule},
		{"the caller's", CallerClock, 1500, 1500, ""},
		{"the caller's, raised", CallerClock, -1500, -500, ""},
		{"the caller's, raised too far", CallerClock, -1500, -490, clockRule},
		{"the caller's, lowered", CallerClock, 0, -1, clockRule},
		{"the caller's, too far from the server's", CallerClock, 2100, 2100, clockRule},
		{"the caller's, too far behind the server's", CallerClock, -2100, -2100, clockRule},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tell(t)
			o := h.call(0, Fixed, 1).allowed(19)
			o.Clock, o.Now, o.Answer.Decisions[0].At = c.clock, begin+c.now, begin+c.at
			h.want(c.broken)
		})
	}
}

func TestTimesToLive(t *testing.T) {
	for ttl, broken := range map[int64]string{-2: "", 1: "", 6500: "", 6501: ttlRule, -1: ttlRule} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			h := tell(t)
			h.audit(0, Fixed, 20, ttl)
			h.want(broken)
		})
	}
}

func (h *told) refund(at int64, of *Operation) *Operation {
	o := h.call(at, of.Charges[0].Policy, of.Charges[0].Cost).named(of.ID).allowed(60)
	o.Refund = true
	return o
}

func TestARefund(t *testing.T) {
	const limit = 60
	for _, c := range []struct {
		name   string
		tell   func(h *told)
		broken string
	}{
		{"gives back", func(h *told) {
			h.refund(200, h.call(0, Lent, 10).named("a").allowed(50))
			h.audit(1000, Lent, limit, soloTTL)
		}, ""},
		{"gives back nothing", func(h *told) {
			h.refund(200, h.call(0, Lent, 10).named("a").allowed(50))
			h.audit(1000, Lent, limit-10, soloTTL)
		}, spentRule},
		{"gives back twice", func(h *told) {
			h.call(0, Lent, 20).allowed(40)
			first := h.call(20, Lent, 10).named("a").allowed(30)
			h.refund(200, first)
			h.refund(400, first)
			h.audit(1000, Lent, limit-10, soloTTL)
		}, keptRule},
		{"keeps out what was on its way", func(h *told) {
			h.refund(20, h.call(0, Lent, 10).named("a").fails(stint.OutcomeUnknown))
			h.audit(1000, Lent, limit-10, soloTTL)
		}, spentRule},
		{"may have given back", func(h *told) {
			o := h.refund(200, h.call(0, Lent, 10).named("a").allowed(50))
			o.Answer = nil
			h.audit(1000, Lent, limit, soloTTL)
			h.audit(1000, Lent, limit-10, soloTTL)
		}, ""},
		{"that was refused gives back nothing", func(h *told) {
			o := h.refund(200, h.call(0, Lent, 10).named("a").allowed(50))
			o.Answer.Decisions, o.Answer.Allowed = nil, false
			o.fails(stint.NoMutation)
			h.audit(1000, Lent, limit, soloTTL)
		}, keptRule},
		{"does not last", func(h *told) {
			h.refund(200, h.call(0, Lent, 10).named("a").fails(stint.OutcomeUnknown))
			h.call(400, Lent, 10).named("a").allowed(50)
		}, "what was refunded stays so"},
		{"makes room for others", func(h *told) {
			h.refund(200, h.call(0, Lent, 60).named("a").allowed(0))
			h.call(400, Lent, 60).named("b").allowed(0)
			h.audit(1000, Lent, 0, soloTTL)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tell(t)
			c.tell(h)
			h.want(c.broken)
		})
	}
}

// Sums alone do not show these.
func TestOrder(t *testing.T) {
	t.Run("a denial while there was room", func(t *testing.T) {
		h := tell(t)
		h.call(0, Solo, 10).allowed(140)
		h.call(20, Solo, 10).refused(140)
		h.audit(1000, Solo, 140, soloTTL)
		h.want(orderRule)
	})
	t.Run("what is spent after its deadline", func(t *testing.T) {
		h := tell(t)
		h.call(0, Solo, 10).fails(stint.OutcomeUnknown)
		h.call(200, Solo, 10).allowed(140)
		h.audit(1000, Solo, 130, soloTTL)
		h.want(orderRule)
	})
	t.Run("calls at the same time, in any order", func(t *testing.T) {
		h := tell(t)
		h.call(0, Solo, 10).allowed(130)
		h.call(0, Solo, 10).allowed(140)
		h.audit(1000, Solo, 130, soloTTL)
		if r := h.want(""); r.Ordered != 1 {
			t.Errorf("got %d counters ordered, want 1", r.Ordered)
		}
	})
}

func TestContradictingAnswers(t *testing.T) {
	for name, spoil := range map[string]func(a *Answer){
		"allowed and denied":     func(a *Answer) { a.Allowed = false },
		"an error and decisions": func(a *Answer) { a.Reason = stint.NoMutation },
		"too few decisions":      func(a *Answer) { a.Decisions = nil },
		"less than nothing left": func(a *Answer) { a.Decisions[0].Remaining = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			h := tell(t)
			spoil(h.call(0, Solo, 10).allowed(140).Answer)
			h.want(formRule)
		})
	}
}

// What cannot be compared is counted, so that a run that compared nothing shows.
func TestAnAuditTooEarlyOrAfterALossComparesNothing(t *testing.T) {
	h := tell(t)
	h.call(0, Solo, 10).allowed(140)
	h.audit(50, Solo, 150, -2)
	h.loss(200, 210)
	h.audit(1000, Solo, 150, -2)
	if r := h.want(""); r.Compared != 0 || r.Passed != 2 {
		t.Errorf("compared %d, passed %d", r.Compared, r.Passed)
	}
}
