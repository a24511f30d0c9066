package redisstore

import (
	"fmt"
	"strconv"
	"strings"
)

// lagging is the lag in seconds from which on a replica is no help in a
// failover. A replica reports once a second.
const lagging = 10

// replica is what a primary's INFO says of one.
type replica struct {
	state  string
	lag    int   // seconds since it was heard of
	behind int64 // bytes
}

// replicasOf reads the lines "slave0:ip=…,port=…,state=online,offset=…,lag=…".
func replicasOf(info map[string]string) (all []replica) {
	written, _ := strconv.ParseInt(info["master_repl_offset"], 10, 64)
	for i := 0; ; i++ {
		line, found := info["slave"+strconv.Itoa(i)]
		if !found {
			return all
		}
		values := map[string]string{}
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(part, "=")
			values[name] = value
		}
		r := replica{state: values["state"]}
		r.lag, _ = strconv.Atoi(values["lag"])
		if offset, err := strconv.ParseInt(values["offset"], 10, 64); err == nil {
			r.behind = max(0, written-offset)
		}
		all = append(all, r)
	}
}

func (s *inspected) replicas() {
	const check = "replicas"
	if s.infoErr != nil {
		s.unseen(check, s.infoErr)
		return
	}
	all := replicasOf(s.info)
	if len(all) == 0 {
		s.report(check, StatusInfo, "none: evaluations answer 503 for as long as this server is gone", "")
		return
	}
	status, seen := StatusPass, make([]string, len(all))
	advice := ""
	for i, r := range all {
		seen[i] = fmt.Sprintf("%s, heard of %d s ago, %d bytes behind", r.state, r.lag, r.behind)
		if r.state != "online" || r.lag >= lagging {
			status, advice = StatusWarn, "a failover to a replica that lags loses what was spent meanwhile: look at it and at the network"
		}
	}
	s.report(check, status, fmt.Sprintf("%d: %s", len(all), strings.Join(seen, "; ")), advice)
}

// minimumReplicas: INFO names the good replicas only if the server asks for
// some before it takes a write.
func (s *inspected) minimumReplicas() {
	const check = "min-replicas-to-write"
	good, set := s.info["min_slaves_good_slaves"]
	switch {
	case s.infoErr != nil:
		s.unseen(check, s.infoErr)
	case set && good == "0":
		s.report(check, StatusFail, "set, and none is good: every write is refused (NOREPLICAS)", "bring a replica back")
	case set:
		s.report(check, StatusPass, "set; good replicas now: "+good, "")
	case len(replicasOf(s.info)) == 0:
		s.report(check, StatusInfo, "not set; there are no replicas", "")
	default:
		s.report(check, StatusWarn, "not set: a primary that was cut off goes on admitting beside the one that replaced it",
			"set min-replicas-to-write 1, and min-replicas-max-lag to what may be lost")
	}
}
