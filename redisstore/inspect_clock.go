package redisstore

import (
	"context"
	"fmt"
	"time"
)

// clockSamples is how often a server is asked for its time: the quickest
// answer tells most.
const clockSamples = 8

// What two clocks may differ by before it is said, and before somebody should
// look.
const (
	clockNoticed = 100 * time.Millisecond
	clockApart   = time.Second
)

// clock compares this host's clock with the server's.
func (s *inspected) clock(ctx context.Context) {
	const check = "clock"
	quickest := time.Duration(0)
	for range clockSamples {
		asked := time.Now()
		host := s.now()
		server, err := s.limiter.Time(ctx).Result()
		if err != nil {
			s.unseen(check, err)
			return
		}
		took := time.Since(asked)
		if !s.timed || took < quickest {
			s.timed, quickest = true, took
			s.offset = host.Add(took / 2).Sub(server)
		}
	}
	s.judgeClock(check)
}

func (s *inspected) judgeClock(check string) {
	detail, apart := describeOffset(s.offset), s.offset.Abs()
	const advice = "synchronise both clocks"
	bound := s.config.MaximumClockSkew
	switch {
	case s.config.Clock == CallerClock && bound != SkewUnchecked && apart > bound:
		s.report(check, StatusFail, fmt.Sprintf("%s, more than maximum_clock_skew (%v): evaluations from here are CLOCK_UNSAFE", detail, bound), advice)
	case s.config.Clock == CallerClock && bound != SkewUnchecked && apart > bound/2:
		s.report(check, StatusWarn, fmt.Sprintf("%s, more than half of maximum_clock_skew (%v)", detail, bound), advice)
	case apart > clockApart && s.config.Clock == ServerClock:
		s.report(check, StatusWarn, detail+"; decisions are made on the server's and do not mind, logs do", advice)
	case apart > clockApart:
		s.report(check, StatusWarn, detail, advice)
	default:
		s.report(check, StatusPass, detail, "")
	}
}

// describeOffset is for people, who do not care for the last digit.
func describeOffset(d time.Duration) string {
	way := "ahead of"
	if d < 0 {
		way = "behind"
	}
	if d.Abs() < clockNoticed {
		return fmt.Sprintf("this host's clock is within %v of the server's", clockNoticed)
	}
	return fmt.Sprintf("this host's clock is %.1f s %s the server's", d.Abs().Seconds(), way)
}

// spread compares the clocks of several primaries: after a failover between
// two that differ, counters wait for the difference.
func (in *inspection) spread(primaries []*inspected) {
	const check = "clocks-agree"
	var earliest, latest *inspected
	timed := 0
	for _, p := range primaries {
		if !p.timed {
			continue
		}
		timed++
		if earliest == nil || p.offset > earliest.offset {
			earliest = p
		}
		if latest == nil || p.offset < latest.offset {
			latest = p
		}
	}
	if timed < 2 {
		return
	}
	apart := earliest.offset - latest.offset
	f := Finding{Check: check, Status: StatusPass, Detail: fmt.Sprintf("the clocks of %d primaries are within %v of each other", timed, max(clockNoticed, apart.Round(clockNoticed)))}
	if apart > clockApart {
		f.Status = StatusWarn
		f.Detail = fmt.Sprintf("the clock of %s is %.1f s behind that of %s", earliest.addr, apart.Seconds(), latest.addr)
		f.Advice = "synchronise the servers' clocks: a slot that moves between them answers CLOCK_UNSAFE until time has caught up"
	}
	in.report(f)
}
