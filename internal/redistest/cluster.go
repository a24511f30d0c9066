package redistest

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartCluster starts a Cluster of so many primaries, each with so many
// replicas, and waits until every node finds it whole. A primary that is gone
// for nodeTimeout is voted out. The primaries come first.
func StartCluster(t testing.TB, primaries, replicas int, nodeTimeout time.Duration, args ...string) []*Server {
	t.Helper()
	nodes := make([]*Server, primaries*(1+replicas))
	for i := range nodes {
		nodes[i] = Start(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
			"--repl-diskless-sync-delay", "0",
		}, args...)...)
	}
	create := []string{"--cluster", "create"}
	for _, n := range nodes {
		create = append(create, n.addr)
	}
	nodes[0].CLI(append(create, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")...)
	for _, n := range nodes {
		n.await("cluster_state:ok", "cluster", "info")
		n.await("cluster_known_nodes:"+strconv.Itoa(len(nodes)), "cluster", "info")
		if n.CLI("role")[:5] == "slave" {
			n.await("master_link_status:up", "info", "replication")
		}
	}
	return nodes
}

// CLI runs redis-cli against the server and returns what it prints.
func (s *Server) CLI(args ...string) string {
	s.t.Helper()
	out, err := s.cli(args...)
	if err != nil {
		s.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *Server) cli(args ...string) (string, error) {
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		s.t.Fatalf("redis-cli is not installed: run scripts/install-test-deps, or on Debian apt-get install redis-tools (%v)", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append([]string{"-p", s.port()}, args...)...).CombinedOutput()
	return strings.ReplaceAll(strings.TrimSpace(string(out)), "\r", ""), err
}

// await runs a command until its reply contains a text.
func (s *Server) await(text string, args ...string) {
	s.t.Helper()
	deadline := time.After(startTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := s.cli(args...)
		if err == nil && strings.Contains(out, text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%s: %q never says %q:\n%s", s.addr, strings.Join(args, " "), text, out)
		}
	}
}
