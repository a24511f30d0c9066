package app

import (
	"fmt"
	"testing"

	"github.com/stintlimit/stint/internal/redistest"
)

func TestHowFullTheStoreIsShows(t *testing.T) {
	s := start(t, "store: {memory: {max_subjects: 5}}\n"+tenEachTime)
	if !s.counted("stint_store_subjects 0") || !s.counted("stint_store_subjects_limit 5") {
		t.Errorf("at the start: %s", s.operator("/metrics").body)
	}
	s.do("GET", "/")
	s.do("GET", "/")
	if !s.counted("stint_store_subjects 1") {
		t.Errorf("after one caller: %s", s.operator("/metrics").body)
	}
}

func TestNobodyKnowsHowManySubjectsRedisHolds(t *testing.T) {
	up := newUpstream(t, nil)
	s := start(t, fmt.Sprintf(onRedis, up.URL, redistest.Start(t).Addr()))
	if s.counted("stint_store_subjects 0") {
		t.Error("it claims to hold none")
	}
}
