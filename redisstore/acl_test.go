package redisstore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// limiterRules is what the limiter's account may do, as docs/redis.md says it.
func limiterRules(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rules, found := strings.Cut(string(page), "stint on >change-me ")
	if !found {
		t.Fatal("docs/redis.md does not say what the account may do")
	}
	rules, _, _ = strings.Cut(rules, "\n")
	return rules
}

func contains(s, part string) bool { return strings.Contains(s, part) }

// A server on which nobody but the limiter's account may do anything.
func restricted(t *testing.T, rules string) Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte("user default off\nuser stint on >secret "+rules+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, "--aclfile", file)
	c := patient(server.Addr())
	c.Username, c.Password = "stint", "secret"
	return c
}

func TestTheLimitersAccountIsEnough(t *testing.T) {
	c := restricted(t, limiterRules(t))
	m := memstore.New(memstore.Config{})
	fixture := func(s stint.Store) storetest.Fixture {
		return storetest.Fixture{Store: s, Forget: func() error { return nil }}
	}
	storetest.Agree(t, fixture(forgetful{m}), fixture(open(t, c)), 1, 200)
}

// forgetful hides that the memory store could forget: the limiter's account may not flush.
type forgetful struct{ stint.Store }

func TestTheLimitersAccountIsNotTooMuch(t *testing.T) {
	c := restricted(t, limiterRules(t))
	silenceClient()
	admin := redis.NewClient(&redis.Options{Addr: c.Addresses[0], Username: c.Username, Password: c.Password, Protocol: 2, DisableIdentity: true})
	defer admin.Close()
	for _, command := range [][]any{
		{"eval", "return 1", 0}, {"get", "stint:x"}, {"set", "other:x", 1}, {"script", "flush"}, {"flushall"}, {"keys", "*"}, {"config", "get", "*"},
	} {
		if err := admin.Do(context.Background(), command...).Err(); err == nil || !contains(err.Error(), "NOPERM") {
			t.Errorf("%v: %v, want NOPERM", command, err)
		}
	}
}

// Removing any one command is refused, and nothing is admitted for lack of it.
func TestEachRuleIsNeeded(t *testing.T) {
	single, several := anyPolicies(t)
	for rule := range strings.FieldsSeq(limiterRules(t)) {
		if !strings.HasPrefix(rule, "+") || rule == "+ping" { // +ping is for Ping alone
			continue
		}
		t.Run(rule, func(t *testing.T) {
			s := open(t, restricted(t, strings.Replace(limiterRules(t), rule, "", 1)))
			failed := false
			for range 2 { // in-place writes come second
				for _, p := range append(single, several...) {
					g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
					if v, err := s.Decide(context.Background(), g); err != nil {
						failed = true
					} else if !v.Allowed {
						t.Errorf("%s: denied", p.ID)
					}
				}
			}
			if !failed {
				t.Errorf("nothing needs %s", rule)
			}
		})
	}
	t.Run("+ping", func(t *testing.T) {
		s := open(t, restricted(t, strings.Replace(limiterRules(t), "+ping", "", 1)))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Ping(ctx); err == nil {
			t.Error("Ping works without +ping")
		}
	})
}
