package chaos

import (
	"fmt"
	"time"

	"github.com/stintlimit/stint"
)

// MaximumClockSkew is how far a caller's clock may stand from the server's in
// a run: the default of package redisstore.
const MaximumClockSkew = 2 * time.Second

// clockSlack, ms, covers rounding to whole milliseconds on both sides.
const clockSlack = 2

// checkClock: what was decided was decided by a clock inside its bounds. The
// machine's clock, which called and returned are read from, is the server's.
func (c *check) checkClock(o *Operation) {
	if o.Answer == nil || o.Answer.Reason != "" || o.replayed() {
		return
	}
	const rule = "an unsafe clock decides nothing"
	subject := fmt.Sprintf("call %d of process %d", o.Number, o.Process)
	from, to := o.Called/1000-clockSlack, o.Answer.Returned/1000+clockSlack
	if o.Clock == CallerClock {
		skew := MaximumClockSkew.Milliseconds()
		if o.Now < from-skew || o.Now > to+skew {
			c.fail(rule, subject, "decided at the caller's %d, called at %d and answered at %d: more than %d ms apart", o.Now, from, to, skew)
		}
	}
	for i, d := range o.Answer.Decisions {
		c.checkEffective(o, c.policies[o.Charges[i].Policy], d, from, to, subject)
	}
}

// checkEffective: the effective now is the clock's, or was raised by no more
// than the policy lets a clock go back.
func (c *check) checkEffective(o *Operation, p *stint.Policy, d Decision, from, to int64, subject string) {
	if o.Clock == CallerClock {
		from, to = o.Now, o.Now
	}
	raised := p.MaximumClockRegression.Milliseconds()
	if d.At < from || d.At > to+raised {
		c.fail("an unsafe clock decides nothing", subject, "decided on a counter at %d with a clock at %d: at most %d ms behind is allowed", d.At, to, raised)
	}
}
