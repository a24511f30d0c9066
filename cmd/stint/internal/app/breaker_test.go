package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/breaker"
	"github.com/stintlimit/stint/internal/redistest"
)

// onRedisWith is onRedis with another setting of the store.
func onRedisWith(setting string) string {
	return strings.Replace(onRedis, "prefix: e2e", "prefix: e2e, "+setting, 1)
}

func TestAnOutageOpensTheBreakerAndItsEndClosesIt(t *testing.T) {
	server := redistest.Start(t)
	up := newUpstream(t, nil)
	s := start(t, fmt.Sprintf(onRedisWith("breaker: {failures: 2, cooldown: 200ms}"), up.URL, server.Addr()))
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	for _, line := range []string{`state{state="closed"} 1`, `state{state="open"} 0`, `state{state="half-open"} 0`, "opened_total 0"} {
		if !s.counted("stint_breaker_" + line) {
			t.Errorf("at the start there is no stint_breaker_%s", line)
		}
	}

	server.Pause() // what is sent is never answered
	for range 2 {
		checkOutage(t, s)
	}
	if !s.counted("stint_breaker_opened_total 1") {
		t.Fatal("not open after two failures")
	}
	// Asking the server would take its timeout, a quarter of a second, each.
	requests, outage := 0, 5*200*time.Millisecond
	for began := time.Now(); time.Since(began) < outage; requests++ {
		checkOutage(t, s)
	}
	if requests < 10*int(outage/(250*time.Millisecond)) {
		t.Errorf("only %d requests in %v", requests, outage)
	}
	eventually(t, patience, "not up", func() bool { return s.counted("stint_store_up 0") })
	if !s.counted("stint_breaker_opened_total 1") || s.log.count("the breaker is open") != 1 {
		t.Error("one outage is counted and logged once")
	}

	server.Resume()
	eventually(t, 3*time.Second, "admitting again", func() bool { return s.do("GET", "/").status == 200 })
	if s.log.count("the breaker is closed") != 1 || !s.counted(`stint_breaker_state{state="closed"} 1`) {
		t.Error("it did not say that it is closed")
	}
	eventually(t, patience, "up", func() bool { return s.counted("stint_store_up 1") })
}

func TestOnlyRedisHasABreaker(t *testing.T) {
	server := redistest.Start(t)
	for name, text := range map[string]string{
		"in memory": tenEachTime,
		"off":       fmt.Sprintf(onRedisWith("breaker: off"), newUpstream(t, nil).URL, server.Addr()),
	} {
		s := start(t, text)
		if strings.Contains(s.operator("/metrics").body, "stint_breaker") {
			t.Errorf("%s: there is a breaker", name)
		}
	}
}

// A deadline shorter than what a breaker asks for by default must not hide an
// outage from it.
func TestShortDeadlinesCount(t *testing.T) {
	for _, c := range []struct{ deadline, want time.Duration }{
		{time.Millisecond, time.Millisecond / 2},
		{750 * time.Millisecond, breaker.DefaultPatience},
	} {
		if got := fairTime(c.deadline); got != c.want {
			t.Errorf("%v: %v, want %v", c.deadline, got, c.want)
		}
	}
}
