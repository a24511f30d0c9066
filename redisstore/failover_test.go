package redisstore

import (
	"context"
	"fmt"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// Replication is asynchronous, so a failover loses what had not arrived: what
// was spent, and the record of it, together. Then as much can be admitted again
// as was lost, by repeating ids or by new ones, and nothing beyond.
func TestAFailoverAdmitsAgainWhatItLostAndNoMore(t *testing.T) {
	const limit, arrived, lost = 10, 4, 3
	primary, replica := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	host, port, _ := net.SplitHostPort(primary.Addr())
	before, after := inspect(t, primary.Addr()), inspect(t, replica.Addr())
	do(t, after, "replicaof", host, port)
	old := open(t, patient(primary.Addr()))
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: limit, Window: 24 * time.Hour}}, Dedup: stint.Dedup{TTL: time.Hour}})
	take := func(s *Store, n int) stint.Decision {
		t.Helper()
		return decide(t, s, group(stint.Take, stint.NewEvaluationID("test", fmt.Sprint(n)), epoch,
			stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
	}
	admitted := 0
	for n := range arrived {
		if take(old, n).Outcome == stint.Allowed {
			admitted++
		}
	}
	eventually(t, "the replica has it all", func() bool {
		return maps.Equal(everything(t, before), everything(t, after))
	})
	// From here on nothing arrives, and then the replica is the primary.
	do(t, after, "replicaof", "no", "one")
	for n := range lost {
		if take(old, arrived+n).Outcome == stint.Allowed {
			admitted++
		}
	}
	primary.Kill()
	heir := open(t, patient(replica.Addr()))
	for n := range arrived {
		if d := take(heir, n); !d.Replayed || d.Outcome != stint.Allowed {
			t.Errorf("id %d arrived: %+v, want its answer again", n, d)
		}
	}
	for n := range lost {
		d := take(heir, arrived+n)
		if d.Replayed || d.Outcome != stint.Allowed || d.Remaining != int64(limit-arrived-n-1) {
			t.Errorf("id %d was lost: %+v, want it to be charged anew", arrived+n, d)
		}
		admitted++
	}
	for n := range limit {
		if take(heir, 100+n).Outcome == stint.Allowed {
			admitted++
		}
	}
	if admitted != limit+lost {
		t.Errorf("%d were admitted, of %d and %d lost", admitted, limit, lost)
	}
}

// A server that forgets everything admits one more budget, and a script that
// it forgot is loaded again.
func TestALossAdmitsAtMostOneMoreBudget(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, patient(server.Addr()))
	_, p := oneSender(t, server)
	for losses := range 3 {
		admitted := 0
		for range 15 {
			d := decide(t, s, group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
			if d.Outcome == stint.Allowed {
				admitted++
			}
		}
		if admitted != 10 {
			t.Errorf("after %d losses: %d admitted, want a budget of 10", losses, admitted)
		}
		server.Kill()
		server.Restart()
		eventually(t, "it is used again", func() bool { return s.Ping(context.Background()) == nil })
	}
}
