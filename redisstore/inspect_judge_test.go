package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What INFO says, and what is to be thought of it.
func TestWhatInfoSays(t *testing.T) {
	const replica = "ip=192.0.2.1,port=6379,state=online,offset=90,lag=1"
	for name, tt := range map[string]struct {
		info   string
		check  func(*inspected)
		status Status
		detail string
	}{
		"noeviction":       {"maxmemory_policy:noeviction", (*inspected).eviction, StatusPass, "noeviction"},
		"allkeys-lfu":      {"maxmemory_policy:allkeys-lfu", (*inspected).eviction, StatusFail, "allkeys-lfu"},
		"volatile-ttl":     {"maxmemory_policy:volatile-ttl", (*inspected).eviction, StatusFail, "volatile-ttl"},
		"a policy unsaid":  {"", (*inspected).eviction, StatusWarn, "does not say"},
		"much memory":      {"used_memory:69000000 maxmemory:100000000", (*inspected).memory, StatusPass, "69.0 MB of 100.0 MB in use (69%)"},
		"memory tight":     {"used_memory:70000000 maxmemory:100000000", (*inspected).memory, StatusWarn, "70.0 MB of 100.0 MB"},
		"memory full":      {"used_memory:90000000 maxmemory:100000000", (*inspected).memory, StatusFail, "(90%)"},
		"memory unbounded": {"used_memory:1000000 maxmemory:0", (*inspected).memory, StatusWarn, "no maxmemory"},
		"memory unsaid":    {"used_memory:1000000", (*inspected).memory, StatusWarn, "does not say"},
		"log":              {"aof_enabled:1 aof_last_write_status:ok rdb_last_bgsave_status:ok", (*inspected).persistence, StatusPass, "append-only"},
		"log fails":        {"aof_enabled:1 aof_last_write_status:err rdb_last_bgsave_status:ok", (*inspected).persistence, StatusFail, "append-only"},
		"snapshot fails":   {"aof_enabled:0 rdb_last_bgsave_status:err", (*inspected).persistence, StatusFail, "snapshot"},
		"snapshots or not": {"aof_enabled:0 rdb_last_bgsave_status:ok", (*inspected).persistence, StatusInfo, "no append-only file"},
		"loading":          {"loading:1 aof_enabled:1 aof_last_write_status:ok rdb_last_bgsave_status:ok", (*inspected).persistence, StatusFail, "loading"},
		"no replica":       {"connected_slaves:0", (*inspected).replicas, StatusInfo, "none"},
		"a replica":        {"master_repl_offset:100 slave0:" + replica, (*inspected).replicas, StatusPass, "1: online, heard of 1 s ago, 10 bytes behind"},
		"a replica lags":   {"slave0:" + replica + " slave1:ip=x,state=online,offset=1,lag=10", (*inspected).replicas, StatusWarn, "2: online"},
		"a replica copies": {"slave0:ip=x,state=wait_bgsave,offset=0,lag=0", (*inspected).replicas, StatusWarn, "wait_bgsave"},
		"good replicas":    {"slave0:" + replica + " min_slaves_good_slaves:1", (*inspected).minimumReplicas, StatusPass, "1"},
		"too few replicas": {"slave0:" + replica + " min_slaves_good_slaves:0", (*inspected).minimumReplicas, StatusFail, "none is good"},
		"no minimum":       {"slave0:" + replica, (*inspected).minimumReplicas, StatusWarn, "not set"},
		"nothing to ask":   {"connected_slaves:0", (*inspected).minimumReplicas, StatusInfo, "no replicas"},
		"old":              {"redis_version:6.2.14", (*inspected).version, StatusFail, "Redis 6.2.14"},
		"valkey":           {"redis_version:7.2.4 valkey_version:9.1.2", (*inspected).version, StatusPass, "Valkey 9.1.2"},
		"no version":       {"", (*inspected).version, StatusWarn, "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &inspected{inspection: &inspection{}, info: fields(strings.ReplaceAll(tt.info, " ", "\r\n"))}
			tt.check(s)
			if len(s.findings) != 1 {
				t.Fatalf("%v", s.findings)
			}
			f := s.findings[0]
			if f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) {
				t.Errorf("%v, %q; want %v, %q", f.Status, f.Detail, tt.status, tt.detail)
			}
			if f.Status == StatusFail && f.Advice == "" {
				t.Error("nothing is said to do")
			}
		})
	}
}

func TestWhatAClockThatStandsApartMeans(t *testing.T) {
	for _, tt := range []struct {
		clock  Clock
		skew   time.Duration
		offset time.Duration
		status Status
		detail string
	}{
		{ServerClock, DefaultMaximumClockSkew, 99 * time.Millisecond, StatusPass, "within 100ms"},
		{ServerClock, DefaultMaximumClockSkew, -time.Second, StatusPass, "1.0 s behind"},
		{ServerClock, DefaultMaximumClockSkew, 10 * time.Second, StatusWarn, "10.0 s ahead of the server's; decisions are made on the server's"},
		{CallerClock, DefaultMaximumClockSkew, time.Second, StatusPass, "1.0 s ahead"},
		{CallerClock, DefaultMaximumClockSkew, -1500 * time.Millisecond, StatusWarn, "more than half of"},
		{CallerClock, DefaultMaximumClockSkew, -2500 * time.Millisecond, StatusFail, "CLOCK_UNSAFE"},
		{CallerClock, SkewUnchecked, time.Hour, StatusWarn, "3600.0 s ahead"},
	} {
		s := &inspected{inspection: &inspection{config: Config{Clock: tt.clock, MaximumClockSkew: tt.skew}}, offset: tt.offset}
		s.judgeClock("clock")
		if f := s.findings[0]; f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) {
			t.Errorf("%v: %v, %q; want %v, %q", tt.offset, f.Status, f.Detail, tt.status, tt.detail)
		}
	}
}

func TestClocksOfPrimariesAreCompared(t *testing.T) {
	at := func(addr string, offset time.Duration) *inspected {
		return &inspected{addr: addr, offset: offset, timed: true}
	}
	for _, tt := range []struct {
		primaries []*inspected
		status    Status // 0: nothing to compare
		detail    string
	}{
		{[]*inspected{at("a", time.Hour)}, 0, ""},
		{[]*inspected{at("a", time.Hour), {addr: "b"}}, 0, ""},
		{[]*inspected{at("a", time.Hour), at("b", time.Hour+20*time.Millisecond)}, StatusPass, "2 primaries are within 100ms"},
		{[]*inspected{at("a", 0), at("b", 3*time.Second), at("c", -time.Second)}, StatusWarn, "the clock of b is 4.0 s behind that of c"},
	} {
		in := &inspection{}
		in.spread(tt.primaries)
		switch {
		case tt.status == 0 && len(in.findings) > 0:
			t.Errorf("%v", in.findings)
		case tt.status != 0 && (in.findings[0].Status != tt.status || !strings.Contains(in.findings[0].Detail, tt.detail)):
			t.Errorf("%v, want %v, %q", in.findings, tt.status, tt.detail)
		}
	}
}

func TestUncoveredSlots(t *testing.T) {
	served := func(ranges ...int) (all []redis.ClusterSlot) {
		for i := 0; i < len(ranges); i += 2 {
			all = append(all, redis.ClusterSlot{Start: ranges[i], End: ranges[i+1], Nodes: make([]redis.ClusterNode, 1)})
		}
		return all
	}
	for _, tt := range []struct {
		slots []redis.ClusterSlot
		want  string
	}{
		{served(0, 16383), ""},
		{served(0, 8191, 8192, 16383), ""},
		{served(8192, 16383, 0, 8190), "8191"},
		{served(1, 99, 200, 16382), "0, 100-199, 16383"},
		{served(0, 16000), "16001-16383"},
		{served(), "0-16383"},
		{[]redis.ClusterSlot{{Start: 0, End: 16383}}, "0-16383"},
	} {
		if got := uncovered(tt.slots); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.slots, got, tt.want)
		}
	}
}

func TestCoverage(t *testing.T) {
	whole := []redis.ClusterSlot{{Start: 0, End: slotCount - 1, Nodes: make([]redis.ClusterNode, 1)}}
	for _, tt := range []struct {
		slots  []redis.ClusterSlot
		state  string
		status Status
		detail string
	}{
		{whole, "cluster_state:ok\r\ncluster_slots_fail:0\r\n", StatusPass, "all 16384 slots"},
		{whole, "cluster_state:ok\r\ncluster_slots_fail:5461\r\n", StatusFail, "5461 slots are of nodes that failed"},
		{whole, "cluster_state:fail\r\ncluster_slots_fail:0\r\n", StatusFail, "says that it is fail"},
		{nil, "cluster_state:ok\r\ncluster_slots_fail:0\r\n", StatusFail, "0-16383"},
	} {
		if f := coverage(tt.slots, fields(tt.state)); f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) || (f.Advice == "") != (f.Status == StatusPass) {
			t.Errorf("%+v, want %v, %q", f, tt.status, tt.detail)
		}
	}
}

func TestOnlyThisMachineIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:6379": true, "[::1]:6379": true, "localhost:6379": true,
		"192.0.2.1:6379": false, "redis:6379": false, "127.0.0.1": false,
	} {
		if got := isLoopback(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
