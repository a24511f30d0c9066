package app

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/redistest"
)

const failing = `
upstream: %s
deadline: 10s
store: {redis: {addresses: ["%s"], prefix: e2e, command_timeout: 5s, breaker: off}}
identity: {pseudonym_keys: [{version: 1, file: key.txt}]}
policies:
  - {id: api, evaluation_dedup: off, limits: [{fixed-window: {limit: 10, window: 1000d}}]}
  - {id: watched, mode: shadow, limits: [{fixed-window: {limit: 10, window: 1001d}}]}
routes: [{id: watched, match: /watched, charge: [{policy: watched, subject: client-ip}]}]
default: {charge: [{policy: api, subject: client-ip}]}
`

// failure is something that keeps a server from deciding.
type failure struct {
	begin, end func(*outage)
	status     int
	outcome    string // the label of the counter that moves
	reason     string // what the log says
	mayBeSpent bool
}

// outage is a server, a proxy before it, and a stint that uses them.
type outage struct {
	*testing.T
	server *redistest.Server
	proxy  *redistest.Proxy
	stint  *running
}

func (o *outage) redis(args ...string) { o.Helper(); redisDo(o.T, o.server.Addr(), args...) }

func redis(args ...string) func(*outage) { return func(o *outage) { o.Helper(); o.redis(args...) } }

// counter is the one key of the policy.
func (o *outage) counter() string {
	o.Helper()
	for _, key := range redisDo(o.T, o.server.Addr(), "KEYS", "*") {
		if strings.Contains(key, ":api:") {
			return key
		}
	}
	o.Fatal("there is no counter")
	return ""
}

var failures = map[string]failure{
	"memory is full": {
		begin: redis("CONFIG", "SET", "maxmemory", "1"), end: redis("CONFIG", "SET", "maxmemory", "0"),
		status: 503, outcome: "unavailable", reason: "NO_MUTATION_CONFIRMED",
	},
	"a replica": {
		begin: redis("REPLICAOF", "127.0.0.1", "1"), end: redis("REPLICAOF", "NO", "ONE"),
		status: 503, outcome: "unavailable", reason: "NO_MUTATION_CONFIRMED",
	},
	"too few replicas": {
		begin: redis("CONFIG", "SET", "min-replicas-to-write", "1"), end: redis("CONFIG", "SET", "min-replicas-to-write", "0"),
		status: 503, outcome: "unavailable", reason: "NO_MUTATION_CONFIRMED",
	},
	"an account that may not evaluate": {
		begin: redis("ACL", "SETUSER", "default", "-evalsha"), end: redis("ACL", "SETUSER", "default", "+evalsha"),
		status: 503, outcome: "unavailable", reason: "NO_MUTATION_CONFIRMED",
	},
	"an account that may not write": {
		begin: redis("ACL", "SETUSER", "default", "-setrange", "-set"), end: redis("ACL", "SETUSER", "default", "+setrange", "+set"),
		status: 503, outcome: "indeterminate", reason: "OUTCOME_UNKNOWN",
	},
	"no server": {
		begin: func(o *outage) { o.server.Stop(); o.proxy.CutAll() }, end: func(o *outage) { o.server.Restart() },
		status: 503, outcome: "unavailable", reason: "UNAVAILABLE_BEFORE_SEND",
	},
	"a reply that is lost": {
		begin: func(o *outage) { o.proxy.Next(redistest.DropReply, "evalsha") }, end: func(*outage) {},
		status: 503, outcome: "indeterminate", reason: "OUTCOME_UNKNOWN", mayBeSpent: true,
	},
	"a counter from the future": {
		begin: func(o *outage) {
			var instant [8]byte
			binary.BigEndian.PutUint64(instant[:], uint64(time.Now().Add(24*time.Hour).UnixMilli()))
			o.redis("COPY", o.counter(), "kept")
			o.redis("SETRANGE", o.counter(), "0", string(instant[1:]))
		},
		end:    func(o *outage) { o.redis("RENAME", "kept", o.counter()) },
		status: 503, outcome: "unavailable", reason: "CLOCK_UNSAFE",
	},
	"a foreign value": {
		begin: func(o *outage) {
			key := o.counter()
			o.redis("RENAME", key, "kept")
			o.redis("RPUSH", key, "x")
		},
		end:    func(o *outage) { o.redis("RENAME", "kept", o.counter()) },
		status: 500, outcome: "incompatible", reason: "STATE_INCOMPATIBLE",
	},
}

// Every failure moves the counter of its class and no other, is answered and
// logged as what it is, reaches no upstream, and spends nothing where the
// class says so.
func TestEachFailureIsAnsweredCountedAndLoggedInItsClass(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always") // a restart forgets nothing
			proxy := redistest.StartProxy(t, server.Addr())
			up := newUpstream(t, nil)
			o := &outage{t, server, proxy, start(t, fmt.Sprintf(failing, up.URL, proxy.Addr()))}
			eventually(t, patience, "ready", func() bool { return o.stint.operator("/readyz").status == 200 })
			if r := o.stint.do("GET", "/"); r.status != 200 {
				t.Fatalf("before: %d %s", r.status, r.body)
			}
			f.begin(o)
			r := o.stint.do("GET", "/")
			if r.status != f.status || r.header.Get("RateLimit") != "" || r.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %v %s, want %d", r.status, r.header, r.body, f.status)
			}
			if (r.header.Get("Retry-After") == "") != (f.status == 500) {
				t.Errorf("Retry-After: %q", r.header.Get("Retry-After"))
			}
			f.end(o)
			if up.count() != 1 {
				t.Errorf("%d requests reached the upstream, want the first alone", up.count())
			}
			for _, outcome := range []string{"allowed", "denied", "unavailable", "incompatible", "indeterminate"} {
				want := 0
				if outcome == f.outcome || outcome == "allowed" {
					want = 1
				}
				if line := fmt.Sprintf(`stint_decisions_total{outcome="%s",policy="api"} %d`, outcome, want); !o.stint.counted(line) {
					t.Errorf("not counted: %s", line)
				}
			}
			if o.stint.log.count("reason="+f.reason) != 1 || o.stint.log.count("kind="+f.outcome) != 1 {
				t.Errorf("the log does not say %s", f.reason)
			}
			left := 8 // after two
			if f.mayBeSpent {
				left = 7
			}
			eventually(t, patience, "deciding again", func() bool { r = o.stint.do("GET", "/"); return r.status == 200 })
			if want := fmt.Sprintf(`r=%d;`, left); !strings.Contains(r.header.Get("RateLimit"), want) {
				t.Errorf("RateLimit: %q, want %s", r.header.Get("RateLimit"), want)
			}
		})
	}
}

// A shadow policy refuses nobody, whatever fails, and says that it failed.
func TestAShadowPolicyLetsFailuresPass(t *testing.T) {
	server := redistest.Start(t)
	up := newUpstream(t, nil)
	s := start(t, fmt.Sprintf(failing, up.URL, server.Addr()))
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	redisDo(t, server.Addr(), "CONFIG", "SET", "maxmemory", "1")
	if r := s.do("GET", "/watched"); r.status != 200 || up.count() != 1 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if !s.counted(`stint_decisions_total{outcome="shadow_failed",policy="watched"} 1`) {
		t.Error("not counted as shadow_failed")
	}
}

// A script of somebody else that does not end is told from a server that is
// gone: nothing runs beside it.
func TestAServerThatIsBusyIsUnavailable(t *testing.T) {
	server := redistest.Start(t, "--busy-reply-threshold", "10")
	s := start(t, fmt.Sprintf(failing, newUpstream(t, nil).URL, server.Addr()))
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	c, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "EVAL 'while true do end' 0\r\n")
	eventually(t, patience, "busy", func() bool { _, err := server.Do("PING"); return err != nil && strings.Contains(err.Error(), "BUSY") })
	if r := s.do("GET", "/"); r.status != 503 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if !s.counted(`stint_decisions_total{outcome="unavailable",policy="api"} 1`) || s.log.count("kind=unavailable") != 1 || s.log.count("BUSY") == 0 {
		t.Error("not counted and logged as unavailable")
	}
	redisDo(t, server.Addr(), "SCRIPT", "KILL")
	eventually(t, patience, "deciding again", func() bool { return s.do("GET", "/").status == 200 })
}
