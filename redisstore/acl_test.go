package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// documentedRules is what an account may do, as docs/redis.md says it.
func documentedRules(t *testing.T, account string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rules, found := strings.Cut(string(page), "\n"+account+" on >change-me ")
	if !found {
		t.Fatalf("docs/redis.md does not say what the account %s may do", account)
	}
	rules, _, _ = strings.Cut(rules, "\n")
	return rules
}

func contains(s, part string) bool { return strings.Contains(s, part) }

// A server on which nobody but the limiter's account may do anything; but
// there is a root, to clean up with.
func restricted(t *testing.T, rules string) Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte("user default off\nuser root on >root ~* &* +@all\nuser stint on >secret "+rules+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, "--aclfile", file)
	c := patient(server.Addr())
	c.Username, c.Password = "stint", "secret"
	return c
}

func TestTheLimitersAccountIsEnough(t *testing.T) {
	c := restricted(t, documentedRules(t, LimiterAccount))
	silenceClient()
	root := redis.NewClient(&redis.Options{Addr: c.Addresses[0], Username: "root", Password: "root", Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = root.Close() })
	forget := func() error { return root.FlushAll(context.Background()).Err() }
	fixture := func(t testing.TB) storetest.Fixture {
		if err := forget(); err != nil {
			t.Fatal(err)
		}
		if err := root.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		return storetest.Fixture{Store: open(t, c), Forget: forget}
	}
	t.Run("conformance", func(t *testing.T) { storetest.Run(t, fixture) })
	t.Run("agrees with memory", func(t *testing.T) {
		m := memstore.New(memstore.Config{})
		storetest.Agree(t, storetest.Fixture{Store: m, Forget: func() error { m.Reset(); return nil }}, fixture(t), 1, 500)
	})
}

func TestTheLimitersAccountIsNotTooMuch(t *testing.T) {
	c := restricted(t, documentedRules(t, LimiterAccount))
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

// The words that the rules are written in, and the pages and files that show them.
func TestTheRulesAreWrittenOnce(t *testing.T) {
	if got, want := documentedRules(t, LimiterAccount), limiterRules(DefaultPrefix); got != want {
		t.Errorf("docs/redis.md says of the limiter's account\n%s\nand it is\n%s", got, want)
	}
	if got, want := documentedRules(t, InspectionAccount), inspectionRules(); got != want {
		t.Errorf("docs/redis.md says of the inspection account\n%s\nand it is\n%s", got, want)
	}
	for _, version := range []string{ACLFor70, ACLFor8} {
		want, err := ACL(version, "")
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("..", "deploy", "redis", "users-"+version+".acl")
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what ACL says: go test ./redisstore -run Written -update\n%s", name, diff)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the files of deploy/redis")

func TestACLRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := ACL("6.2", "stint"); !errors.Is(err, ErrACLVersion) {
		t.Errorf("version 6.2: %v", err)
	}
	for _, prefix := range []string{"a b", "a:b", "*", "~", "a\nuser x on nopass +@all", strings.Repeat("a", 33)} {
		if text, err := ACL(ACLFor8, prefix); err == nil {
			t.Errorf("prefix %q: %s", prefix, text)
		}
	}
	if text, err := ACL(ACLFor8, "a.b"); err != nil || !contains(text, " ~a.b:* ") {
		t.Errorf("prefix a.b: %s, %v", text, err)
	}
}

// filled is an ACL file with passwords in it: limit and inspect.
func filled(t *testing.T, version string) string {
	t.Helper()
	text, err := ACL(version, "")
	if err != nil {
		t.Fatal(err)
	}
	for placeholder, password := range map[string]string{"LIMITER": "limit", "INSPECTION": "inspect"} {
		sum := sha256.Sum256([]byte(password))
		text = strings.Replace(text, "SHA256-OF-THE-"+placeholder+"-PASSWORD", hex.EncodeToString(sum[:]), 1)
	}
	return text
}

// deployed is a server with such a file, and how both accounts log in.
func deployed(t *testing.T, version string, args ...string) (c Config, inspector InspectOption) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(filled(t, version)), 0o600); err != nil {
		t.Fatal(err)
	}
	c = patient(redistest.Start(t, append([]string{"--aclfile", file}, args...)...).Addr())
	c.Username, c.Password = LimiterAccount, "limit"
	return c, WithInspector(InspectionAccount, "inspect")
}

func TestDeployedFilesGrantNothingElse(t *testing.T) {
	ctx := context.Background()
	for _, version := range []string{ACLFor70, ACLFor8} {
		t.Run(version, func(t *testing.T) {
			c, _ := deployed(t, version)
			silenceClient()
			for _, account := range [][2]string{{"", ""}, {LimiterAccount, "limit"}, {InspectionAccount, "inspect"}} {
				client := redis.NewClient(&redis.Options{Addr: c.Addresses[0], Username: account[0], Password: account[1], Protocol: 2, DisableIdentity: true})
				t.Cleanup(func() { _ = client.Close() })
				for _, command := range [][]any{
					{"eval", "return 1", 0}, {"eval_ro", "return 1", 0}, {"fcall", "f", 0}, {"function", "load", "x"},
					{"get", "stint:x"}, {"set", "other:x", 1}, {"keys", "*"}, {"config", "get", "*"}, {"acl", "list"}, {"flushall"},
				} {
					if err := client.Do(ctx, command...).Err(); err == nil || !contains(err.Error(), "NOPERM") && !contains(err.Error(), "NOAUTH") {
						t.Errorf("%q, %v: %v", account[0], command, err)
					}
				}
				if err := client.Do(ctx, "evalsha", noScript, 1, "stint:x").Err(); (account[0] == LimiterAccount) != (err != nil && contains(err.Error(), "NOSCRIPT")) {
					t.Errorf("%q, EVALSHA: %v", account[0], err)
				}
			}
			if d := decide(t, open(t, c), group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{
				Policy: policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 3, Window: time.Hour}}}), Subject: subject("a"), Cost: 1})); d.Outcome != stint.Allowed {
				t.Errorf("under the limiter's account: %v", d)
			}
		})
	}
}

// Nobody can forget to fill in a password: no server takes the words in its place.
func TestPlaceholdersAreNoPasswords(t *testing.T) {
	admin := inspect(t, redistest.Start(t).Addr())
	text, err := ACL(ACLFor70, "")
	if err != nil {
		t.Fatal(err)
	}
	refusals := 0
	for line := range strings.Lines(text) {
		rule, placeholder, _ := strings.Cut(strings.TrimSpace(line), "#")
		if placeholder == "" {
			continue
		}
		refusals++
		args := []any{"acl", "setuser"}
		for word := range strings.FieldsSeq(strings.TrimPrefix(rule, "user ") + "#" + placeholder) {
			args = append(args, word)
		}
		if err := admin.Do(context.Background(), args...).Err(); err == nil || !contains(err.Error(), "Error in ACL SETUSER modifier '#") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if refusals != 2 {
		t.Errorf("%d accounts with a placeholder", refusals)
	}
}

// Removing any one command is refused, and nothing is admitted for lack of it.
func TestEachRuleIsNeeded(t *testing.T) {
	single, several := anyPolicies(t)
	for rule := range strings.FieldsSeq(documentedRules(t, LimiterAccount)) {
		if !strings.HasPrefix(rule, "+") || rule == "+ping" || contains(rules(clusterGrants), rule) { // each has a test of its own
			continue
		}
		t.Run(rule, func(t *testing.T) {
			s := open(t, restricted(t, strings.Replace(documentedRules(t, LimiterAccount), rule, "", 1)))
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
		s := open(t, restricted(t, strings.Replace(documentedRules(t, LimiterAccount), "+ping", "", 1)))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Ping(ctx); err == nil {
			t.Error("Ping works without +ping")
		}
	})
}
