package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// refusal is a state of a real server in which it does not decide.
type refusal struct {
	args   []string // of the server
	begin  func(*testing.T, *redis.Client)
	end    func(*testing.T, *redis.Client)
	says   string // part of the reply
	proves stint.Reason
	evicts bool // the connection is given up
}

// do sends a command that must succeed.
func do(t *testing.T, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func doing(args ...any) func(*testing.T, *redis.Client) {
	return func(t *testing.T, c *redis.Client) { t.Helper(); do(t, c, args...) }
}

func several(steps ...func(*testing.T, *redis.Client)) func(*testing.T, *redis.Client) {
	return func(t *testing.T, c *redis.Client) {
		t.Helper()
		for _, s := range steps {
			s(t, c)
		}
	}
}

func config(key string, value any) func(*testing.T, *redis.Client) {
	return doing("config", "set", key, value)
}

// replies waits until a command of an administrator is answered with text that
// contains what is wanted, be it an error.
func replies(want string, args ...any) func(*testing.T, *redis.Client) {
	return func(t *testing.T, c *redis.Client) {
		t.Helper()
		eventually(t, want, func() bool {
			text, err := c.Do(context.Background(), args...).Text()
			return strings.Contains(text, want) || err != nil && strings.Contains(err.Error(), want)
		})
	}
}

// inBackground sends a command that is answered only when the refusal ends.
func inBackground(args ...any) func(*testing.T, *redis.Client) {
	return func(t *testing.T, c *redis.Client) {
		other := redis.NewClient(&redis.Options{Addr: c.Options().Addr, Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute, MaxRetries: -1})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = other.Do(context.Background(), args...).Err()
		}()
		t.Cleanup(func() { <-done; _ = other.Close() })
	}
}

// replicaOfNobody makes the server a replica whose primary is not there, so
// that it keeps what it has.
var replicaOfNobody = doing("replicaof", "127.0.0.1", "1")

// dumpFile is where the server would save itself.
func dumpFile(t *testing.T, c *redis.Client) string {
	t.Helper()
	dir, err := c.ConfigGet(context.Background(), "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir["dir"], "dump.rdb")
}

// The states in which a real server refuses a script before it starts it.
var refusals = map[string]refusal{
	"OOM": {
		begin: config("maxmemory", 1), end: config("maxmemory", 0),
		says: "OOM command not allowed", proves: stint.NoMutation,
	},
	"READONLY": {
		begin: replicaOfNobody, end: doing("replicaof", "no", "one"),
		says: "READONLY You can't write", proves: stint.NoMutation, evicts: true,
	},
	"MASTERDOWN": {
		// A replica that may be written to: with any other, READONLY comes first.
		args:  []string{"--replica-serve-stale-data", "no", "--replica-read-only", "no"},
		begin: replicaOfNobody, end: doing("replicaof", "no", "one"),
		says: "MASTERDOWN Link with MASTER is down", proves: stint.NoMutation,
	},
	"MISCONF": {
		begin: several(config("save", "3600 1000000"), func(t *testing.T, c *redis.Client) {
			// A folder stands where the file should be.
			_ = os.Remove(dumpFile(t, c))
			if err := os.Mkdir(dumpFile(t, c), 0o700); err != nil {
				t.Fatal(err)
			}
		}, doing("bgsave"), replies("rdb_last_bgsave_status:err", "info", "persistence")),
		end: several(func(t *testing.T, c *redis.Client) {
			if err := os.Remove(dumpFile(t, c)); err != nil {
				t.Fatal(err)
			}
		}, doing("bgsave"), replies("rdb_last_bgsave_status:ok", "info", "persistence"), config("save", "")),
		says: "MISCONF ", proves: stint.NoMutation,
	},
	"NOREPLICAS": {
		begin: config("min-replicas-to-write", 1), end: config("min-replicas-to-write", 0),
		says: "NOREPLICAS Not enough good replicas", proves: stint.NoMutation,
	},
	"LOADING": {
		args: []string{"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"},
		begin: several(doing("debug", "populate", 5000, "other", 100), config("key-load-delay", 2000),
			inBackground("debug", "reload"), replies("\nloading:1", "info", "persistence")),
		end:  several(config("key-load-delay", 0), replies("\nloading:0", "info", "persistence")),
		says: "LOADING ", proves: stint.NoMutation,
	},
	"BUSY": {
		args:  []string{"--busy-reply-threshold", "10"},
		begin: several(inBackground("eval", "while true do end", 0), replies("BUSY", "ping")),
		end:   several(doing("script", "kill"), replies("PONG", "ping")),
		says:  "BUSY ", proves: stint.NoMutation,
	},
	"NOPERM for the command": {
		begin: doing("acl", "setuser", "default", "-evalsha"), end: doing("acl", "setuser", "default", "+evalsha"),
		says: "NOPERM ", proves: stint.NoMutation,
	},
	"NOPERM for the key": {
		begin: doing("acl", "setuser", "default", "resetkeys", "~other:*"), end: doing("acl", "setuser", "default", "~*"),
		says: "NOPERM ", proves: stint.NoMutation,
	},
	// From inside a script that has begun: perhaps something was written before.
	"NOPERM inside the script": {
		begin: doing("acl", "setuser", "default", "-set", "-setrange"), end: doing("acl", "setuser", "default", "+set", "+setrange"),
		says: "script: ", proves: stint.OutcomeUnknown,
	},
}

// Each state of a real server in its class: what is proved, that nothing was
// spent, and what becomes of the connection. When it ends, the next evaluation
// is decided.
func TestARealServersRefusals(t *testing.T) {
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, r.args...)
			admin := inspect(t, server.Addr())
			s, p := oneSender(t, server)
			for spent := range int64(2) {
				if err := spend(s, p); err != nil {
					t.Fatal(err)
				}
				before := connection(s)
				r.begin(t, admin)
				wantProved(t, spend(s, p), r.proves, r.says)
				if evicted := connection(s) != before; evicted != r.evicts {
					t.Errorf("the connection was given up: %v, want %v", evicted, r.evicts)
				}
				wantProved(t, spend(s, p), r.proves, r.says)
				if err := s.Ping(t.Context()); err == nil && r.proves == stint.NoMutation {
					t.Error("Ping finds the server usable")
				}
				r.end(t, admin)
				wantHeld(t, server, p, spent+1)
			}
			if err := spend(s, p); err != nil {
				t.Errorf("it is over: %v", err)
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("it is over, and Ping says %v", err)
			}
			wantHeld(t, server, p, 3)
		})
	}
}

// oneSender opens a store with one connection, and a policy that takes the
// general script.
func oneSender(t *testing.T, server *redistest.Server) (*Store, *stint.Policy) {
	t.Helper()
	c := patient(server.Addr())
	c.Senders = 1
	return open(t, c), policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 10, Window: 24 * time.Hour}, stint.TokenBucket{Capacity: 10, Refill: 1, Every: 24 * time.Hour},
	}})
}

// connection is what the sender of a store sends on; nil if it has none.
func connection(s *Store) *observedConn {
	w := s.topology.(standalone).senders[0].wire
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		return c
	}
	return nil
}

func spend(s *Store, p *stint.Policy) error {
	_, err := s.Decide(context.Background(), group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
	return err
}

func wantProved(t *testing.T, err error, r stint.Reason, says string) {
	t.Helper()
	if !errors.Is(err, r) || !errors.Is(err, r.Kind()) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %s with %q", err, r, says)
	}
}

// wantHeld reads what was spent with another store.
func wantHeld(t *testing.T, server *redistest.Server, p *stint.Policy, want int64) {
	t.Helper()
	other := open(t, patient(server.Addr()))
	defer other.Close()
	d := decide(t, other, group(stint.Peek, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a")}))
	if got := 10 - d.Remaining; got != want {
		t.Errorf("the server holds %d spent, want %d", got, want)
	}
}

// A script that is killed has proved nothing, although the server lets only
// one be killed that has not written.
func TestAScriptKilledByAnOperatorIsIndeterminate(t *testing.T) {
	whole := luaGroup
	luaGroup = "while call('EXISTS', 'hold') == 1 do end\n" + whole
	defer func() { luaGroup = whole }()
	server := redistest.Start(t, "--busy-reply-threshold", "10")
	admin := inspect(t, server.Addr())
	s, p := oneSender(t, server)
	if err := spend(s, p); err != nil {
		t.Fatal(err)
	}
	do(t, admin, "set", "hold", "1")
	done := make(chan error)
	go func() { done <- spend(s, p) }()
	replies("BUSY", "ping")(t, admin)
	do(t, admin, "script", "kill")
	wantProved(t, <-done, stint.OutcomeUnknown, "script: ")
	do(t, admin, "del", "hold")
	wantHeld(t, server, p, 1)
	if err := spend(s, p); err != nil {
		t.Error(err)
	}
	wantHeld(t, server, p, 2)
}

// An account that is deleted takes its connections with it: nothing is sent
// any more.
func TestAnAccountThatIsDeletedSendsNothing(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	do(t, admin, "acl", "setuser", "limiter", "on", ">secret", "~*", "+@all")
	c := patient(server.Addr())
	c.Senders, c.Username, c.Password = 1, "limiter", "secret"
	s := open(t, c)
	_, p := oneSender(t, server)
	if err := spend(s, p); err != nil {
		t.Fatal(err)
	}
	do(t, admin, "acl", "deluser", "limiter")
	wantProved(t, spend(s, p), stint.BeforeSend, "WRONGPASS")
	wantHeld(t, server, p, 1)
	do(t, admin, "acl", "setuser", "limiter", "on", ">secret", "~*", "+@all")
	if err := spend(s, p); err != nil {
		t.Error(err)
	}
	wantHeld(t, server, p, 2)
}

// A node of a Cluster that is taken for a server of its own.
func TestANodeOfAClusterRefusesWhatIsNotForIt(t *testing.T) {
	node := redistest.Start(t, "--cluster-enabled", "yes")
	admin := inspect(t, node.Addr())
	s, p := oneSender(t, node)
	// Of one key, without a record: Valkey looks at the keys' slots first.
	alone := *p
	alone.Dedup.Off = true
	wantProved(t, spend(s, policy(t, alone)), stint.NoMutation, "CLUSTERDOWN ")
	do(t, admin, "cluster", "addslotsrange", 0, 16383)
	replies("cluster_state:ok", "cluster", "info")(t, admin)
	wantProved(t, spend(s, p), stint.NoMutation, "CROSSSLOT ")
	if n, err := admin.DBSize(context.Background()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys were written (%v)", n, err)
	}
}

// A server that is not there, and one that hangs up, again and again.
func TestNoConnectionOutlivesItsServer(t *testing.T) {
	server := redistest.Start(t)
	s, p := oneSender(t, server)
	if err := spend(s, p); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		server.Stop()
		for range 3 {
			err := spend(s, p)
			if !errors.Is(err, stint.BeforeSend) || !errors.As(err, new(net.Error)) && !strings.Contains(err.Error(), "refused") {
				t.Errorf("got %v, want %s", err, stint.BeforeSend)
			}
		}
		server.Restart()
		if err := spend(s, p); err != nil {
			t.Errorf("the server is back: %v", err)
		}
		wantHeld(t, server, p, 1)
	}
}
