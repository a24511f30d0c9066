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
	by     manner
	state  atomic.Int32
	answer answer
	done   chan struct{} // of capacity 1
	timer  *time.Timer
}

var jobs = sync.Pool{New: func() any {
	j := &job{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	j.timer.Stop()
	return j
}}

// lane is a bounded queue and the senders that empty it. What waits too long
// is known to be unsent, because a sender takes it only if its caller has not
// given it up.
type lane struct {
	queue   chan *job
	closing chan struct{}
	once    sync.Once
	senders sync.WaitGroup
}

func newLane(length int, senders []*sender) *lane {
	l := &lane{queue: make(chan *job, length), closing: make(chan struct{})}
	for _, s := range senders {
		l.senders.Go(func() { l.run(s) })
	}
	return l
}

// close lets no sender take another group.
func (l *lane) close() { l.once.Do(func() { close(l.closing) }) }

// drain waits for the senders and answers everything that still waits.
func (l *lane) drain() {
	l.senders.Wait()
	for {
		select {
		case j := <-l.queue:
			if j.state.CompareAndSwap(queued, sent) {
				j.answer = answer{err: &stint.Error{Reason: stint.AdmissionRejected, Cause: errClosed}}
				j.done <- struct{}{}
			}
		default:
			return
		}
	}
}

func (l *lane) run(s *sender) {
	for {
		select {
		case <-l.closing:
			return
		case j := <-l.queue:
			if j.state.CompareAndSwap(queued, sent) {
				j.answer = s.execute([]*stint.Group{&j.group}, j.group.Deadline, j.by)[0]
				j.done <- struct{}{}
			}
		}
	}
}

// decide queues a group and waits for its answer, at most a little longer than
// its deadline.
func (l *lane) decide(ctx context.Context, g stint.Group, by manner) (stint.Verdict, error) {
	left := time.Until(g.Deadline)
	if left <= 0 {
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected, Cause: context.DeadlineExceeded}
	}
	j := jobs.Get().(*job)
	j.group, j.by = g, by
	j.state.Store(queued)
	select {
	case <-l.closing:
		jobs.Put(j)
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected, Cause: errClosed}
	default:
	}
	select {
	case l.queue <- j:
	default:
		jobs.Put(j)
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected, Cause: errQueueFull}
	}
	j.timer.Reset(left)
	a, finished := l.wait(ctx, j)
	if finished {
		j.timer.Stop()
		j.answer = answer{}
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
