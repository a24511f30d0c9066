//go:build chaos

package redisstore

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

// nodeTimeout is how long a primary may be silent before it is voted out: longer
// than a busy machine keeps a process waiting.
const nodeTimeout = 2 * time.Second

// sixNodes is a Cluster whose nodes tell clients to come through the weather.
func sixNodes(t *testing.T, seed uint64) *rig {
	t.Helper()
	servers := redistest.StartCluster(t, 3, 1, nodeTimeout, "--cluster-replica-validity-factor", "0")
	s := &rig{also: []chaos.Deed{chaos.FailOver, chaos.MoveSlot}}
	for i, server := range servers {
		s.nodes = append(s.nodes, victim{server, redistest.StartWeather(t, server.Addr(), seed+uint64(i))})
		s.clients.Addresses = append(s.clients.Addresses, s.nodes[i].weather.Addr())
		s.direct.Addresses = append(s.direct.Addresses, server.Addr())
	}
	s.clients.Cluster, s.direct.Cluster = true, true
	announce := func(n int) {
		_, port, _ := net.SplitHostPort(s.nodes[n].weather.Addr())
		if _, err := s.nodes[n].server.Do("config", "set", "cluster-announce-port", port); err != nil {
			t.Fatal(err)
		}
	}
	for n := range s.nodes {
		announce(n)
	}
	s.replicas = &replicas{
		nodes: s.nodes, parts: 3, rejoin: announce,
		hurry: func(replica int) error {
			_, err := s.nodes[replica].server.Do("cluster", "failover")
			return err
		},
	}
	s.moveSlot = func(dice uint64, pause time.Duration) { moveSlot(t, s, dice, pause) }
	return s
}

// moveSlot moves the slot of a random key to another primary: a first key, a
// pause in which callers find the slot torn, and then the others.
func moveSlot(t *testing.T, s *rig, dice uint64, pause time.Duration) {
	t.Helper()
	do := func(server *redistest.Server, command ...string) string {
		reply, err := server.Do(command...)
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		return reply
	}
	primaries := s.replicas.primaries(t)
	source := s.nodes[primaries[dice%uint64(len(primaries))]].server
	target := s.nodes[primaries[(dice+1)%uint64(len(primaries))]].server
	key := do(source, "randomkey")
	if key == "" {
		return
	}
	slot, sourceID, targetID := do(source, "cluster", "keyslot", key), do(source, "cluster", "myid"), do(target, "cluster", "myid")
	do(target, "cluster", "setslot", slot, "importing", sourceID)
	do(source, "cluster", "setslot", slot, "migrating", targetID)
	for first := true; ; first = false {
		keys := strings.Fields(source.CLI("cluster", "getkeysinslot", slot, "1"))
		if len(keys) == 0 {
			break
		}
		host, port, _ := net.SplitHostPort(target.Addr())
		do(source, "migrate", host, port, keys[0], "0", "1000")
		if first {
			linger(pause)
		}
	}
	do(target, "cluster", "setslot", slot, "node", targetID)
	do(source, "cluster", "setslot", slot, "node", targetID)
	for _, n := range s.nodes {
		_, _ = n.server.Do("cluster", "setslot", slot, "node", targetID) // the others hear of it anyway
	}
}
