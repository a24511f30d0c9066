// Package redistest starts real Redis servers for tests, and a proxy that
// loses, holds and spoils what passes through it.
//
// Servers listen on a free loopback port, keep their files in the test's
// temporary folder, and are stopped by process id when the test ends. A
// missing server binary fails the test: nothing is skipped. It is for this
// project's tests and benchmarks only.
package redistest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server may take to answer its first PING.
const startTimeout = 20 * time.Second

// Server is one redis-server process. Its methods are for one goroutine.
type Server struct {
	t       testing.TB
	addr    string
	dir     string
	args    []string
	trusted *tls.Config // how to reach it; nil: without TLS
	cmd     *exec.Cmd
	done    chan struct{}
}

// Start starts a server with extra configuration arguments such as "--appendonly", "no". It persists nothing unless they say so.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := prepare(t)
	s.args = append([]string{"--port", s.port(), "--save", "", "--appendonly", "no"}, args...)
	s.Restart()
	return s
}

// StartTLS starts a server that listens with a certificate and without TLS not
// at all. Clients need no certificate of their own. Replication, if arguments
// ask for it, is secured too.
func StartTLS(t testing.TB, c Certificate, args ...string) *Server {
	t.Helper()
	s := prepare(t)
	s.trusted = c.authority.Trust(c.name)
	s.args = append(c.flags(s.port()), "--save", "", "--appendonly", "no")
	s.args = append(s.args, args...)
	s.Restart()
	return s
}

func prepare(t testing.TB) *Server {
	t.Helper()
	addr, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, addr: addr, dir: t.TempDir()}
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// ports are those of servers: from 10,000, and 10,000 above each, for the bus
// of a Cluster, below those that systems give to outgoing connections. One of
// those would take the place of a server that is down for a moment.
const firstPort, ports = 10_000, 10_000

// nextPort starts anywhere, so that test binaries that run at the same time
// seldom try the same, and one binary tries none twice.
var nextPort = func() *atomic.Int64 {
	n := &atomic.Int64{}
	n.Store(rand.Int64N(ports))
	return n
}()

// FreeAddress returns an address for a server that a test starts by itself.
func FreeAddress() (string, error) {
	for range ports {
		port := firstPort + int(nextPort.Add(1)%ports)
		if isFree(port) && isFree(port+ports) {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
		}
	}
	return "", fmt.Errorf("no free port from %d to %d", firstPort, firstPort+ports)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Addr is "127.0.0.1:<port>"; it stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// Restart starts the process again after Stop or Kill, empty, on the same
// address, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatalf("redis-server is not installed: run scripts/install-test-deps, or on Debian apt-get install redis-server (%v)", err)
	}
	args := append(slices.Clone(s.args),
		"--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no", "--logfile", filepath.Join(s.dir, "redis.log"))
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd, s.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.done)
	s.waitReady()
}

func (s *Server) waitReady() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.answers() {
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			s.t.Fatalf("redis-server did not answer on %s within %v:\n%s", s.addr, startTimeout, log)
		case <-s.done:
			log, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			s.t.Fatalf("redis-server stopped at once:\n%s", log)
		case <-tick.C:
		}
	}
}

func (s *Server) answers() bool {
	c, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return false
	}
	if s.trusted != nil {
		c = tls.Client(c, s.trusted)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprint(c, "PING\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && (strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH"))
}

// Stop ends the process and waits for it. Stopping twice is harmless.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the process as a crash would, with SIGKILL.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGCONT)
	s.signal(sig)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		s.signal(syscall.SIGKILL)
		<-s.done
	}
	s.cmd = nil
}

// Pause stops the process without ending it: connections stay open and
// nothing answers.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

// PID is the process id, for those who measure it; 0 while it is stopped.
func (s *Server) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}
