package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// Under the limiter's account a Cluster admits what it should, also while a
// slot moves; without either of the rules that are for Clusters it does not.
func TestTheLimitersAccountInACluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3, 0, time.Second)
	c := patient(nodes[0].Addr())
	c.Cluster, c.Clock, c.CommandTimeout = true, ServerClock, 5*time.Second
	c.Username, c.Password = LimiterAccount, "limit"
	allow := func(rules string) {
		t.Helper()
		for _, n := range nodes {
			n.CLI(append([]string{"acl", "setuser", LimiterAccount, "reset", "on", ">limit"}, strings.Fields(rules)...)...)
		}
	}
	three := policy(t, stint.Policy{ID: "three", Limits: []stint.Limit{stint.FixedWindow{Limit: 3, Window: 100 * 24 * time.Hour}}})

	allow(limiterRules(DefaultPrefix))
	s := open(t, c)
	for i := range 30 {
		for n := range 4 {
			v, err := take(s, three, named(i))
			if err != nil || v.Allowed != (n < 3) {
				t.Fatalf("subject %d, take %d: %v, %v", i, n, v.Allowed, err)
			}
		}
	}
	for check, f := range findings(t, c) {
		if f.Status == StatusFail || check == "account-sufficient" && f.Status != StatusPass {
			t.Errorf("%s: %v, %s", check, f.Status, f.Detail)
		}
	}

	move(t, nodes, s, three, named(100))
	if v, err := take(s, three, named(100)); err != nil || !v.Allowed {
		t.Errorf("while its slot moves: %v, %v", v.Allowed, err)
	}
	allow(strings.Replace(limiterRules(DefaultPrefix), "+asking", "", 1))
	if _, err := take(s, three, named(100)); !errors.Is(err, stint.Unavailable) {
		t.Errorf("without +asking while its slot moves: %v", err)
	}

	allow(strings.Replace(limiterRules(DefaultPrefix), "+cluster|slots", "", 1))
	if _, err := take(open(t, c), three, named(0)); !errors.Is(err, stint.Unavailable) {
		t.Errorf("without +cluster|slots: %v", err)
	}
}

// move begins to move the slot of a subject who has spent nothing.
func move(t *testing.T, nodes []*redistest.Server, s *Store, p *stint.Policy, who stint.Pseudonym) {
	t.Helper()
	cl := s.topology.(*cluster)
	slot := cl.slot(&stint.Charge{Policy: p, Subject: who})
	owner, err := cl.owner(context.Background(), slot, time.Now().Add(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := owner.where(context.Background())
	i := slices.IndexFunc(nodes, func(n *redistest.Server) bool { return n.Addr() == addr })
	source, target := nodes[i], nodes[(i+1)%len(nodes)]
	target.CLI("cluster", "setslot", fmt.Sprint(slot), "importing", source.CLI("cluster", "myid"))
	source.CLI("cluster", "setslot", fmt.Sprint(slot), "migrating", target.CLI("cluster", "myid"))
}

// Every primary of a Cluster is looked at, whichever node is configured.
func TestAnInspectionOfACluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3, 0, time.Second)
	gone := redistest.Start(t)
	gone.Stop()
	c := patient(gone.Addr())
	c.Cluster, c.Clock = true, ServerClock
	c.Addresses = append(c.Addresses, nodes[1].Addr())
	found, err := Inspect(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, f := range found {
		if f.Check == "eviction" && f.Status == StatusPass {
			seen[f.Node]++
		}
		if f.Status == StatusFail {
			t.Errorf("%s: %s", f.Check, f.Detail)
		}
	}
	for _, n := range nodes {
		if seen[n.Addr()] != 1 {
			t.Errorf("%s was looked at %d times", n.Addr(), seen[n.Addr()])
		}
	}
	has := func(check, node, detail string) bool {
		return slices.ContainsFunc(found, func(f Finding) bool {
			return f.Check == check && f.Node == node && strings.Contains(f.Detail, detail)
		})
	}
	if !has("cluster-slots", "", "all 16384 slots") || !has("clocks-agree", "", "3 primaries") || !has("latency", "", "1000 peeks") || !has("reachable", gone.Addr(), "a configured address") {
		t.Errorf("%v", found)
	}

	// As if it were one server, or one as if it were a Cluster.
	c.Addresses, c.Cluster = []string{nodes[0].Addr()}, false
	wantStatus(t, findings(t, c), "topology", StatusFail)
	single := patient(redistest.Start(t).Addr())
	single.Cluster, single.Clock = true, ServerClock
	wantStatus(t, findings(t, single), "topology", StatusFail)
}
