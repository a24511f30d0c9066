//go:build chaos

package redisstore

import (
	"net"
	"testing"

	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

// watchedName is what the Sentinel calls the primary.
const watchedName = "chaos"

// withSentinel is a primary, its replica and a Sentinel, who all know each
// other by the addresses of the weather: so clients are sent through it.
func withSentinel(t *testing.T, seed uint64) *rig {
	t.Helper()
	s := &rig{also: []chaos.Deed{chaos.FailOver}}
	for i := range uint64(2) {
		server := redistest.Start(t, "--repl-diskless-sync-delay", "0")
		s.nodes = append(s.nodes, victim{server, redistest.StartWeather(t, server.Addr(), seed+i)})
	}
	do := func(server *redistest.Server, command ...string) {
		if _, err := server.Do(command...); err != nil {
			t.Fatalf("%q: %v", command, err)
		}
	}
	place := func(n int) (host, port string) {
		host, port, _ = net.SplitHostPort(s.nodes[n].weather.Addr())
		return host, port
	}
	follow := func(n, primary int) {
		host, port := place(n)
		do(s.nodes[n].server, "config", "set", "replica-announce-ip", host, "replica-announce-port", port)
		if n != primary {
			host, port = place(primary)
			do(s.nodes[n].server, "replicaof", host, port)
		}
	}
	follow(0, 0)
	follow(1, 0)
	sentinel := redistest.StartSentinel(t, watchedName, s.nodes[0].server)
	host, port := place(0)
	do(sentinel, "sentinel", "remove", watchedName)
	do(sentinel, "sentinel", "monitor", watchedName, host, port, "1")
	do(sentinel, "sentinel", "set", watchedName, "down-after-milliseconds", "1500", "failover-timeout", "3000")
	s.clients.Sentinel = sentinel.Addr()
	s.direct = s.clients
	s.replicas = &replicas{
		nodes: s.nodes, parts: 1,
		rejoin: func(n int) { follow(n, 1-n) },
		hurry: func(int) error {
			_, err := sentinel.Do("sentinel", "failover", watchedName)
			return err
		},
	}
	return s
}
