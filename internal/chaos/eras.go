package chaos

// eras are the times between losses of data, numbered from 0. What happened in
// one era leaves nothing in the next.
type eras []Loss

// span is the eras that something may have happened in, the ends included.
type span struct{ first, last int }

// of returns the eras of what happened at some instant of an interval.
func (e eras) of(from, to int64) (s span) {
	for _, l := range e {
		if l.To <= from {
			s.first++
		}
		if l.From <= to {
			s.last++
		}
	}
	return s
}

// within calls check for every run of eras that has something whole inside it,
// with those items and the number of eras. Items that are known to be of n eras
// may use up n budgets, and no more: checking every run finds any excess that
// no assignment to eras explains.
func within[T any](items []T, of func(T) span, check func(inside []T, eras int64)) {
	last := 0
	starts := map[int]bool{}
	for _, i := range items {
		last = max(last, of(i).last)
		starts[of(i).first] = true
	}
	for first := range last + 1 {
		if !starts[first] {
			continue
		}
		for end := first; end <= last; end++ {
			var inside []T
			closes := false
			for _, i := range items {
				if s := of(i); s.first >= first && s.last <= end {
					inside = append(inside, i)
					closes = closes || s.last == end
				}
			}
			if closes {
				check(inside, int64(end-first+1))
			}
		}
	}
}
