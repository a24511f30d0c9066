package config

import (
	"slices"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

// DefaultRoute is the id of the route that takes what no other matches.
const DefaultRoute = "default"

func (d *decoder) checkRoutes(c *draft) {
	policies := map[string]stint.Policy{}
	for _, p := range c.Policies {
		policies[p.ID] = p
	}
	ids := map[string]int{}
	for i, r := range c.Routes {
		at := index("routes", i)
		j, taken := ids[r.ID]
		switch {
		case r.ID == DefaultRoute:
			d.problem(at+".id", "%q is the id of the default route: choose another", r.ID)
		case taken && r.ID != "":
			d.problem(at+".id", "%q is taken by %s", r.ID, index("routes", j))
		}
		ids[r.ID] = i
		if len(r.Charges) == 0 && d.given(at+".charge") && d.sound(at+".charge") {
			d.problem(at+".charge", "is empty: a route charges something; to let it pass, put its pattern under exempt.paths")
		}
		d.checkCharges(r.Charges, r.Cost, at, policies, c)
	}
	d.checkCharges(c.Default, 1, "default", policies, c)
	d.checkPatterns(c)
}

func (d *decoder) checkCharges(charges []Charge, cost int64, at string, policies map[string]stint.Policy, c *draft) {
	if len(charges) > stint.MaxCharges {
		d.problem(at+".charge", "has %d charges: at most %d", len(charges), stint.MaxCharges)
	}
	for i, ch := range charges {
		place := index(at+".charge", i)
		p, known := policies[ch.Policy]
		switch {
		case ch.Policy == "" || !d.sound(place+".policy"): // reported
		case !known && len(policies) > 0:
			d.problem(place+".policy", "no policy is named %q; %s", clip(ch.Policy), suggest(ch.Policy, policyIDs(c), "there are"))
		case known:
			d.checkCost(cost, at, place, p)
		}
		if d.sound(place) {
			d.checkCharge(charges, i, place, c)
		}
	}
	if d.sound(at + ".charge") {
		d.checkTogether(charges, at, policies)
		d.checkSlots(charges, at, policies, c)
	}
}

func (d *decoder) checkCost(cost int64, at, place string, p stint.Policy) {
	frozen, err := stint.NewPolicy(p)
	if err == nil && cost > frozen.MaximumCost {
		d.problem(at+".cost", "%d is above the maximum cost of policy %q, %d: %s could never pass", cost, p.ID, frozen.MaximumCost, place)
	}
}

func (d *decoder) checkCharge(charges []Charge, i int, place string, c *draft) {
	ch := charges[i]
	if ch.Subject != subject.ClientIP && d.given(place+".ipv6_prefix") {
		d.problem(place+".ipv6_prefix", "groups addresses: it has no meaning beside `subject: %s`", ch.Subject)
	}
	if ch.Subject == subject.Everyone && ch.SkipMissing {
		d.problem(place+".missing", "everyone is never missing: leave the key out")
	}
	if ch.Subject == subject.Principal && c.Identity.PrincipalHeader == "" && d.sound("identity") {
		d.problem(place+".subject", "there are no principals: identity.principal_header is not set")
	}
	same := func(o Charge) bool {
		return o.Policy == ch.Policy && o.Subject == ch.Subject && o.PerRoute == ch.PerRoute
	}
	if j := slices.IndexFunc(charges[:i], same); j >= 0 {
		d.problem(place, "charges the budget of charge[%d] again: a higher cost is `cost`", j)
	}
}

// checkTogether checks what charges of one route owe to each other: a header
// that anybody can invent, or leave out, must not be the only bound.
func (d *decoder) checkTogether(charges []Charge, at string, policies map[string]stint.Policy) {
	shadow := func(ch Charge) bool { return policies[ch.Policy].Mode == stint.Shadow }
	accompanied := func(i int, suitable func(Charge) bool) bool {
		for j, o := range charges {
			if j != i && !o.SkipMissing && suitable(o) && (!shadow(o) || shadow(charges[i])) {
				return true
			}
		}
		return false
	}
	isAddress := func(ch Charge) bool { return ch.Subject == subject.ClientIP }
	for i, ch := range charges {
		place := index(at+".charge", i)
		if ch.SkipMissing && !accompanied(i, func(Charge) bool { return true }) {
			d.problem(place+".missing", "skip needs another charge beside it that is enforced and cannot be skipped:"+
				" whoever leaves the %s out would pass without limit", ch.Subject)
		}
		if ch.Subject == subject.APIKey && !accompanied(i, isAddress) {
			d.problem(place+".subject", "an API key is not verified here, and anybody can invent keys:"+
				" charge `client-ip` in the same route too, enforced and without `missing: skip`")
		}
	}
}

func policyIDs(c *draft) []string {
	var ids []string
	for _, p := range c.Policies {
		if p.ID != "" && !slices.Contains(ids, p.ID) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
