package redisstore

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// primaries finds the servers that decide, and reaches each.
func (in *inspection) primaries(ctx context.Context) []*inspected {
	var all []*inspected
	for _, addr := range in.configured(ctx) {
		s := in.reach(ctx, addr)
		all = append(all, s)
		if !s.clustered() {
			continue
		}
		if found := s.cluster(ctx); len(found) > 0 {
			for _, entry := range all {
				if entry.helloErr != nil {
					entry.report("reachable", StatusWarn, "a configured address: "+entry.helloErr.Error(), "configure nodes that are there")
				}
				entry.close()
			}
			return found
		}
	}
	return all
}

// clustered reports whether the server is a node of a Cluster.
func (s *inspected) clustered() bool {
	return s.hello["mode"] == "cluster" || s.info["redis_mode"] == "cluster"
}

// configured returns the addresses that the configuration leads to.
func (in *inspection) configured(ctx context.Context) []string {
	if in.config.Sentinel == nil {
		return in.config.Addresses
	}
	const check = "sentinel"
	s := newSentinels(in.config)
	defer func() { _ = s.close() }()
	addr, err := s.primary(ctx)
	if err != nil {
		in.report(Finding{Check: check, Status: StatusFail, Detail: err.Error(), Advice: "compare the master's name, the Sentinels' addresses and their account"})
		return nil
	}
	in.report(Finding{Check: check, Status: StatusPass, Detail: "the primary is " + addr})
	return []string{addr}
}

// cluster checks that every slot is served, and returns the primaries, none if
// they cannot be found.
func (s *inspected) cluster(ctx context.Context) (found []*inspected) {
	const check = "cluster-slots"
	slots, err := s.inspector.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS does not say which port fits the connection
	if err != nil {
		s.unseen(check, err)
		return nil
	}
	text, err := s.inspector.ClusterInfo(ctx).Result()
	if err != nil {
		s.unseen(check, err)
		return nil
	}
	s.inspection.report(coverage(slots, fields(text)))
	seen := map[string]bool{}
	for _, r := range slots {
		if len(r.Nodes) == 0 {
			continue
		}
		addr := s.announced(r.Nodes[0].Addr)
		if !seen[addr] {
			seen[addr] = true
			found = append(found, s.reach(ctx, addr))
		}
	}
	return found
}

// coverage judges what CLUSTER SLOTS and CLUSTER INFO say.
func coverage(slots []redis.ClusterSlot, state map[string]string) Finding {
	f := Finding{Check: "cluster-slots", Status: StatusFail, Advice: "cover them again, with redis-cli --cluster fix or by bringing their nodes back"}
	switch missing, failing := uncovered(slots), state["cluster_slots_fail"]; {
	case missing != "":
		f.Detail = "no node serves the slots " + missing
	case failing != "0":
		f.Detail = failing + " slots are of nodes that failed"
	case state["cluster_state"] != "ok":
		f.Detail = "the cluster says that it is " + state["cluster_state"]
		f.Advice = "look at CLUSTER INFO, and at the logs of the nodes"
	default:
		f.Status, f.Detail, f.Advice = StatusPass, "all "+strconv.Itoa(slotCount)+" slots are served", ""
	}
	return f
}

// announced completes the address of a node that does not know its own.
func (s *inspected) announced(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host == "" {
		host, _, _ = net.SplitHostPort(s.addr)
	}
	return net.JoinHostPort(host, port)
}

// uncovered names the ranges of slots that no node has, as "101-199, 300".
func uncovered(slots []redis.ClusterSlot) string {
	var served [slotCount + 1]bool
	served[slotCount] = true // ends the last range
	for _, r := range slots {
		for i := max(0, r.Start); i <= min(r.End, slotCount-1); i++ {
			served[i] = len(r.Nodes) > 0 || served[i]
		}
	}
	var ranges []string
	first := -1
	for i, ok := range served {
		switch {
		case !ok && first < 0:
			first = i
		case ok && first == i-1 && first >= 0:
			ranges, first = append(ranges, strconv.Itoa(first)), -1
		case ok && first >= 0:
			ranges, first = append(ranges, fmt.Sprintf("%d-%d", first, i-1)), -1
		}
	}
	return strings.Join(ranges, ", ")
}
