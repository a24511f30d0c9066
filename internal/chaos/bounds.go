package chaos

import (
	"github.com/stintlimit/stint"
)

// checkBounds: what was admitted on a counter stays inside every limit of its
// policy, in effective time, once for each era of data.
func (c *check) checkBounds(counter string, p *stint.Policy, list []admission) {
	within(byInstant(list), func(a admission) span { return a.eras }, func(inside []admission, eras int64) {
		for i, t := range p.Terms() {
			name := p.LimitName(i)
			switch t.Algorithm {
			case stint.AlgorithmFixedWindow:
				c.alignedBound(counter, name, inside, t, eras)
			case stint.AlgorithmSlidingCounter:
				c.alignedBound(counter, name, inside, t, eras)
				c.intervalBound(counter, name, inside, t, eras)
			case stint.AlgorithmTokenBucket:
				c.refillBound(counter, name, inside, t, eras)
			}
		}
	})
}

const boundRule = "admissions stay inside the bound"

// alignedBound: at most the limit in each window that is aligned to the epoch.
func (c *check) alignedBound(counter, name string, list []admission, t stint.Terms, eras int64) {
	sum, window := int64(0), int64(-1)
	for _, a := range list {
		if a.at/t.Period != window {
			sum, window = 0, a.at/t.Period
		}
		sum += a.cost
		if sum > t.Quota*eras {
			c.fail(boundRule, counter, "%s: %d or more admitted in the window from %d, %d eras of data: at most %d each",
				name, sum, window*t.Period, eras, t.Quota)
			return
		}
	}
}

// intervalBound: at most twice the limit in any interval of one window.
func (c *check) intervalBound(counter, name string, list []admission, t stint.Terms, eras int64) {
	sum, oldest := int64(0), 0
	for _, a := range list {
		sum += a.cost
		for list[oldest].at <= a.at-t.Period {
			sum -= list[oldest].cost
			oldest++
		}
		if sum > 2*t.Quota*eras {
			c.fail(boundRule, counter, "%s: %d admitted within one window before %d, %d eras of data: at most %d each",
				name, sum, a.at, eras, 2*t.Quota)
			return
		}
	}
}

// refillBound: at most capacity + refill × ⌈D / every⌉ in any interval D.
//
// With t = q × every + r, ⌈(t' − t) / every⌉ is q' − q, and one more iff r' > r.
// So of all beginnings the one that matters has the least "spent before it,
// minus refill × q", among those with r ≥ r' and, plus refill, among all: two
// minima, kept while passing over the list once.
func (c *check) refillBound(counter, name string, list []admission, t stint.Terms, eras int64) {
	spent := int64(0)
	least := newSuffixMinima(t.Period)
	for _, a := range list {
		q, r := a.at/t.Period, a.at%t.Period
		least.put(r, spent-t.Refill*q*eras)
		spent += a.cost
		base := min(least.from(r), least.from(0)+t.Refill*eras)
		if over := spent - t.Refill*q*eras - base - t.Quota*eras; over > 0 {
			c.fail(boundRule, counter, "%s: %d too many admitted in an interval that ends at %d, %d eras of data", name, over, a.at, eras)
			return
		}
	}
}

// suffixMinima answers: the least value put at or above a position.
type suffixMinima struct{ tree []int64 }

const none = int64(1) << 62

func newSuffixMinima(size int64) *suffixMinima {
	m := &suffixMinima{tree: make([]int64, size+1)}
	for i := range m.tree {
		m.tree[i] = none
	}
	return m
}

func (m *suffixMinima) put(position, value int64) {
	for i := int64(len(m.tree)) - 1 - position; i < int64(len(m.tree)); i += i & -i {
		m.tree[i] = min(m.tree[i], value)
	}
}

func (m *suffixMinima) from(position int64) int64 {
	least := none
	for i := int64(len(m.tree)) - 1 - position; i > 0; i -= i & -i {
		least = min(least, m.tree[i])
	}
	return least
}
