package redisstore

import (
	"fmt"
	"strconv"
)

// The parts of maxmemory in use from which on there is too little left, in
// percent.
const (
	memoryTight = 70
	memoryFull  = 90
)

// eviction: a counter that is evicted hands its subject a whole budget.
func (s *inspected) eviction() {
	const check = "eviction"
	switch policy := s.info["maxmemory_policy"]; {
	case s.infoErr != nil:
		s.unseen(check, s.infoErr)
	case policy == "":
		s.report(check, StatusWarn, "the server does not say its maxmemory-policy", "")
	case policy == "noeviction":
		s.report(check, StatusPass, "maxmemory-policy is noeviction", "")
	default:
		s.report(check, StatusFail, "maxmemory-policy is "+policy+": whoever fills the memory gets other subjects' counters evicted, and whole budgets",
			"set maxmemory-policy noeviction, on a server that is no cache for something else")
	}
}

// memory: when it is full, evaluations answer 503.
func (s *inspected) memory() {
	const check = "memory"
	used, _ := strconv.ParseFloat(s.info["used_memory"], 64)
	most, err := strconv.ParseFloat(s.info["maxmemory"], 64)
	percent := 0.0
	if most > 0 {
		percent = 100 * used / most
	}
	detail := fmt.Sprintf("%s of %s in use (%.0f%%)", megabytes(used), megabytes(most), percent)
	const advice = "raise maxmemory, or find out who invents subjects"
	switch {
	case s.infoErr != nil:
		s.unseen(check, s.infoErr)
	case err != nil:
		s.report(check, StatusWarn, "the server does not say how much memory it may use", "")
	case most == 0:
		s.report(check, StatusWarn, megabytes(used)+" in use, and no maxmemory: the machine's memory is the limit, and the process ends there",
			"set maxmemory below the machine's memory")
	case percent >= memoryFull:
		s.report(check, StatusFail, detail, advice)
	case percent >= memoryTight:
		s.report(check, StatusWarn, detail, advice)
	default:
		s.report(check, StatusPass, detail, "")
	}
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }

// persistence is optional, but when it fails the server refuses writes.
func (s *inspected) persistence() {
	const check = "persistence"
	const advice = "look at the server's log, and at its disk: it may refuse every write (MISCONF)"
	switch {
	case s.infoErr != nil:
		s.unseen(check, s.infoErr)
	case s.info["loading"] == "1":
		s.report(check, StatusFail, "the server is loading its data, and answers no evaluation", "wait until it has")
	case s.info["aof_enabled"] == "1" && s.info["aof_last_write_status"] != "ok":
		s.report(check, StatusFail, "the last write to the append-only file failed", advice)
	case s.info["rdb_last_bgsave_status"] != "ok":
		s.report(check, StatusFail, "the last snapshot failed", advice)
	case s.info["aof_enabled"] == "1":
		s.report(check, StatusPass, "append-only file, and its last write succeeded", "")
	default:
		s.report(check, StatusInfo, "no append-only file: a crash forgets what was spent since the last snapshot, if there is one", "")
	}
}
