package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartSentinel starts a Sentinel that watches primary under a name, alone
// enough for a vote, and fails over after half a second without an answer.
// settings are further lines of its configuration.
func StartSentinel(t testing.TB, name string, primary *Server, settings ...string) *Server {
	t.Helper()
	s := prepare(t)
	s.args = append([]string{s.configure(name, primary, settings), "--sentinel"}, "--port", s.port())
	s.Restart()
	return s
}

// StartSentinelTLS is StartSentinel with a certificate, for a primary that has
// one too.
func StartSentinelTLS(t testing.TB, c Certificate, name string, primary *Server, settings ...string) *Server {
	t.Helper()
	s := prepare(t)
	s.trusted = c.authority.Trust(c.name)
	s.args = append([]string{s.configure(name, primary, settings), "--sentinel"}, c.flags(s.port())...)
	s.Restart()
	return s
}

// configure writes the file that a Sentinel wants to have, and to change.
func (s *Server) configure(name string, primary *Server, settings []string) string {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(primary.addr)
	lines := []string{
		fmt.Sprintf("sentinel monitor %s %s %s 1", name, host, port),
		fmt.Sprintf("sentinel down-after-milliseconds %s 500", name),
		fmt.Sprintf("sentinel failover-timeout %s 3000", name),
	}
	for _, l := range settings {
		lines = append(lines, strings.ReplaceAll(l, "NAME", name))
	}
	path := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}
