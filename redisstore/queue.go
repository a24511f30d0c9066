package redisstore

import "sync"

const (
	// maximumBatch bounds the charges of one batch: enough that a round trip
	// costs each of them little, and few enough that a script stays short.
	maximumBatch = 64

	// lookAhead is how many waiting jobs are looked at for company.
	lookAhead = 4 * maximumBatch
)

// queue is a bounded line of jobs. It is safe for concurrent use.
type queue struct {
	bound int

	mu      sync.Mutex
	filled  sync.Cond
	waiting []*job
	closed  bool
}

// put adds a job at the end, or says why it may not.
func (q *queue) put(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case len(q.waiting) >= q.bound:
		return errQueueFull
	}
	q.waiting = append(q.waiting, j)
	q.filled.Signal()
	return nil
}

// take appends to batch the oldest job that somebody still waits for, and those
// behind it that are of its lot, in their order. It waits until there is one;
// an empty batch says that the queue was closed.
func (q *queue) take(batch []*job) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.waiting) == 0 && !q.closed {
			q.filled.Wait()
		}
		if q.closed {
			return batch
		}
		if batch = q.gather(batch); len(batch) > 0 {
			if len(q.waiting) > 0 {
				q.filled.Signal() // for those of another lot
			}
			return batch
		}
	}
}

// gather takes a batch out of the first jobs that wait, and drops those that
// were given up.
func (q *queue) gather(batch []*job) []*job {
	window := min(len(q.waiting), lookAhead)
	charges, left := 0, window
	// Backwards, what stays is moved to the window's end; so first choose.
	for i, j := range q.waiting[:window] {
		fits := len(batch) == 0 || (j.lot == batch[0].lot && !j.lot.by.alone && charges+j.group.Len() <= maximumBatch && agree(batch, j))
		if !fits {
			continue
		}
		q.waiting[i] = nil
		if j.state.CompareAndSwap(queued, sent) {
			batch = append(batch, j)
			charges += j.group.Len()
		}
	}
	for i := window - 1; i >= 0; i-- {
		if j := q.waiting[i]; j != nil {
			left--
			q.waiting[i], q.waiting[left] = nil, j
		}
	}
	q.waiting = q.waiting[left:]
	return batch
}

// length is how many jobs wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// close wakes everybody; nothing is put or taken from then on.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}

// rest returns what waited when the queue was closed.
func (q *queue) rest() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.waiting
	q.waiting = nil
	return left
}

// agree reports whether no group of batch knows a counter of j under another
// policy than j does: of two that share a key, one may be an edit of the other.
func agree(batch []*job, j *job) bool {
	if j.lot.policy != nil {
		return true
	}
	for i := range j.group.Len() {
		p := j.group.Charge(i).Policy
		for _, other := range batch {
			for n := range other.group.Len() {
				if q := other.group.Charge(n).Policy; q != p && q.Tag() == p.Tag() {
					return false
				}
			}
		}
	}
	return true
}
