package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintlimit/stint"
)

// settle is how much longer than its deadline, or its caller's patience, an
// evaluation that was sent waits for its sender to say what became of it.
const settle = 20 * time.Millisecond

var (
	errQueueFull = errors.New("too many evaluations are waiting for the server")
	errClosed    = errors.New("the store is closed")
	errUnsent    = errors.New("the deadline passed while the evaluation waited for a connection")
	errUnheard   = errors.New("the evaluation was given up before the reply came")
)

// The states of a job. Its caller and its sender race from queued.
const (
	queued int32 = iota
	sent
	abandoned
)

// job is one group on its way through the lane.
type job struct {
	group  stint.Group
	lot    lot
	state  atomic.Int32
	answer answer
	done   chan struct{} // of capacity 1
	timer  *time.Timer
}

// lot is what the groups of one batch have in common.
type lot struct {
	policy *stint.Policy // of a tight script; nil for the general one
	slot   int           // of a Cluster
	by     manner
}

var jobs = sync.Pool{New: func() any {
	j := &job{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	j.timer.Stop()
	return j
}}

// lane is group commit: while senders wait for replies, groups queue; each
// sender takes the oldest and those that can share its round trip. There is no
// timer and nothing waits for company. What waits too long is known to be
// unsent, because a sender takes it only if its caller has not given it up.
type lane struct {
	queue   queue
	senders sync.WaitGroup
}

func newLane(length int, senders []*sender) *lane {
	l := &lane{queue: queue{bound: length}}
	l.queue.filled.L = &l.queue.mu
	for _, s := range senders {
		l.senders.Go(func() { l.run(s) })
	}
	return l
}

// close lets no sender take another group.
func (l *lane) close() { l.queue.close() }

// drain waits for the senders and answers everything that still waits.
func (l *lane) drain() {
	l.senders.Wait()
	for _, j := range l.queue.rest() {
		if j.state.CompareAndSwap(queued, sent) {
			j.answer = answer{err: &stint.Error{Reason: stint.AdmissionRejected, Cause: errClosed}}
			j.done <- struct{}{}
		}
	}
}

func (l *lane) run(s *sender) {
	var batch []*job
	var groups []*stint.Group
	for {
		batch = l.queue.take(batch[:0])
		if len(batch) == 0 {
			return
		}
		groups = groups[:0]
		var latest time.Time
		for _, j := range batch {
			groups = append(groups, &j.group)
			if j.group.Deadline.After(latest) {
				latest = j.group.Deadline
			}
		}
		answers := s.execute(groups, latest, batch[0].lot.by)
		for i, j := range batch {
			j.answer = answers[i]
			j.done <- struct{}{}
		}
		clear(batch)
		clear(groups)
	}
}

// decide queues a group and waits for its answer, at most a little longer than
// its deadline. slot is where it goes in a Cluster.
func (l *lane) decide(ctx context.Context, g stint.Group, slot int, by manner) (stint.Verdict, error) {
	left := time.Until(g.Deadline)
	if left <= 0 {
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected, Cause: context.DeadlineExceeded}
	}
	j := jobs.Get().(*job)
	j.group = g
	j.lot = lot{policy: tightPolicy(&j.group), slot: slot, by: by}
	j.state.Store(queued)
	if err := l.queue.put(j); err != nil {
		j.group = stint.Group{}
		jobs.Put(j)
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected, Cause: err}
	}
	j.timer.Reset(left)
	a, finished := l.wait(ctx, j)
	if finished {
		j.timer.Stop()
		j.answer, j.group = answer{}, stint.Group{}
		jobs.Put(j)
	}
	if g.Op == stint.Peek && stint.ReasonOf(a.err) == stint.OutcomeUnknown {
		// Whatever became of it: a peek writes nothing.
		return stint.Verdict{}, &stint.Error{Reason: stint.NoMutation, Cause: a.err}
	}
	return a.verdict, a.err
}

// wait returns the answer, and whether the job is the caller's again. A job
// that was given up stays with the lane.
func (l *lane) wait(ctx context.Context, j *job) (a answer, finished bool) {
	cause := errUnsent
	select {
	case <-j.done:
		return j.answer, true
	case <-ctx.Done():
		cause = ctx.Err()
	case <-j.timer.C:
	}
	if j.state.CompareAndSwap(queued, abandoned) {
		return answer{err: &stint.Error{Reason: stint.BeforeSend, Cause: cause}}, false
	}
	return l.settle(j)
}

// settle waits a little for the sender of a job that its caller wants to leave.
func (l *lane) settle(j *job) (answer, bool) {
	j.timer.Reset(settle)
	select {
	case <-j.done:
		return j.answer, true
	case <-j.timer.C:
		return answer{err: &stint.Error{Reason: stint.OutcomeUnknown, Cause: errUnheard}}, false
	}
}
