package edge

import (
	"fmt"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

// compile makes a route ready, and says in p what is wrong with it.
func (b *Bridge) compile(c *Config, r *Route, p *problems) *route {
	compiled := &route{id: r.ID, cost: r.Cost}
	if compiled.cost == 0 {
		compiled.cost = 1
	}
	if r.Cost < 0 {
		p.add("Cost", "%d is out of range: at least 1, or 0 for 1", r.Cost)
	}
	if len(r.Charges) > stint.MaxCharges {
		p.add("Charges", "%d are too many: at most %d", len(r.Charges), stint.MaxCharges)
	}
	type counter struct {
		policy   string
		subject  subject.Kind
		perRoute bool
	}
	seen := map[counter]int{}
	for i := range r.Charges {
		ch := &r.Charges[i]
		part := p.within(fmt.Sprintf("Charges[%d].", i), r.ID)
		if j, taken := seen[counter{ch.Policy, ch.Subject, ch.PerRoute}]; taken {
			part.add("Policy", "%q is charged for the same subject by Charges[%d]: it would be spent twice", ch.Policy, j)
		}
		seen[counter{ch.Policy, ch.Subject, ch.PerRoute}] = i
		ready := b.compileCharge(c, r, ch, part)
		if ready.policy != nil && compiled.cost > ready.policy.MaximumCost {
			p.add("Cost", "%d is above the maximum cost of policy %q, %d", compiled.cost, ch.Policy, ready.policy.MaximumCost)
		}
		compiled.charges = append(compiled.charges, ready)
		compiled.policies = append(compiled.policies, ready.policy)
		p.join(part)
	}
	checkCompanions(compiled.charges, p)
	return compiled
}

func (b *Bridge) compileCharge(c *Config, r *Route, ch *Charge, p *problems) charge {
	ready := charge{subject: ch.Subject, missing: ch.Missing, ipv6Prefix: ch.IPv6Prefix}
	if ch.PerRoute {
		ready.operation = r.ID
	}
	if b.limiter != nil {
		if ready.policy = b.limiter.Policy(ch.Policy); ready.policy == nil {
			p.add("Policy", "no policy has the id %q", ch.Policy)
		}
	}
	switch ch.Subject {
	case subject.ClientIP:
	case subject.APIKey:
		if c.APIKeyHeader == "" {
			p.add("Subject", "api-key: no header is configured to hold one")
		}
	case subject.Principal:
		if c.PrincipalHeader == "" && c.Principal == nil {
			p.add("Subject", "principal: no header is configured to hold one")
		}
	case subject.Everyone:
		if b.pseudonymizer != nil {
			ready.everyone, _ = b.pseudonymizer.Pseudonym(subject.Everyone, subject.EveryoneIdentity, ready.operation)
		}
	default:
		p.add("Subject", "%q is none: client-ip, api-key, principal or everyone", ch.Subject)
	}
	if ch.Missing > Skip {
		p.add("Missing", "%d is neither Refuse nor Skip", ch.Missing)
	}
	if ch.Missing == Skip && ch.Subject == subject.Everyone {
		p.add("Missing", "everyone is never missing")
	}
	switch {
	case ch.IPv6Prefix < 0 || ch.IPv6Prefix > 128:
		p.add("IPv6Prefix", "%d is out of range: 1 to 128, or 0 for %d", ch.IPv6Prefix, DefaultIPv6Prefix)
	case ch.IPv6Prefix != 0 && ch.Subject != subject.ClientIP:
		p.add("IPv6Prefix", "belongs to the subject client-ip, not to %s", ch.Subject)
	case ch.IPv6Prefix == 0:
		ready.ipv6Prefix = DefaultIPv6Prefix
	}
	return ready
}

// checkCompanions keeps clients from choosing not to be limited: by leaving
// out an identity that may be skipped, or by inventing API keys.
func checkCompanions(charges []charge, p *problems) {
	for i := range charges {
		ch := &charges[i]
		field := fmt.Sprintf("Charges[%d].", i)
		if ch.missing == Skip && !accompanied(charges, ch, func(*charge) bool { return true }) {
			p.add(field+"Missing", "skip: the route has no other enforced charge that cannot be skipped, "+
				"so leaving out the %s would lift every limit", ch.subject)
		}
		isAddress := func(other *charge) bool { return other.subject == subject.ClientIP }
		if ch.subject == subject.APIKey && !accompanied(charges, ch, isAddress) {
			p.add(field+"Subject", "api-key: keys are not verified here, and whoever invents them would get a budget for each: "+
				"the route must also charge client-ip, enforced and not skipped")
		}
	}
}

// accompanied reports whether a charge that is suitable, and that no client
// can avoid, stands beside ch. A shadow policy limits nobody, so it suffices
// only beside another.
func accompanied(charges []charge, ch *charge, suitable func(*charge) bool) bool {
	for i := range charges {
		other := &charges[i]
		if other != ch && other.missing == Refuse && suitable(other) && (!shadow(other) || shadow(ch)) {
			return true
		}
	}
	return false
}

func shadow(ch *charge) bool { return ch.policy != nil && ch.policy.Mode == stint.Shadow }
