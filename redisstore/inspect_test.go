package redisstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint/internal/redistest"
)

// findings returns what an inspection found, by check.
func findings(t testing.TB, c Config, options ...InspectOption) map[string]Finding {
	t.Helper()
	found, err := Inspect(context.Background(), c, options...)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Finding{}
	for _, f := range found {
		if old, twice := all[f.Check]; twice && old.Node == f.Node {
			t.Errorf("%s is reported twice", f.Check)
		}
		all[f.Check] = f
	}
	return all
}

func wantStatus(t testing.TB, all map[string]Finding, check string, want Status) {
	t.Helper()
	if f := all[check]; f.Status != want {
		t.Errorf("%s: %v, %q; want %v", check, f.Status, f.Detail, want)
	}
}

func TestAnInspectionOfAServerAsDeployed(t *testing.T) {
	for _, version := range []string{ACLFor70, ACLFor8} {
		t.Run(version, func(t *testing.T) {
			c, inspector := deployed(t, version, "--maxmemory", "100mb", "--appendonly", "yes")
			all := findings(t, c, inspector)
			for check, f := range all {
				if f.Status > StatusInfo || contains(f.Detail, "could not look") {
					t.Errorf("%s: %v, %s", check, f.Status, f.Detail)
				}
			}
			for _, check := range []string{
				"reachable", "version", "primary", "account-sufficient", "account-narrow", "eviction", "memory", "persistence", "clock", "latency",
			} {
				wantStatus(t, all, check, StatusPass)
			}
			if f := all["account-narrow"]; !contains(f.Detail, "flushall") {
				t.Errorf("the server was not asked: %s", f.Detail)
			}
		})
	}
}

// What an account may not look at is never a pass, and what to do is said.
func TestAnInspectionUnderTheLimitersAccount(t *testing.T) {
	c, _ := deployed(t, ACLFor70)
	all := findings(t, c)
	for _, check := range []string{"eviction", "memory", "persistence", "replicas", "min-replicas-to-write", "scripts"} {
		wantStatus(t, all, check, StatusWarn)
		if f := all[check]; !contains(f.Detail, "could not look: NOPERM") || !contains(f.Advice, "inspection account") {
			t.Errorf("%s: %s; %s", check, f.Detail, f.Advice)
		}
	}
	for _, check := range []string{"reachable", "version", "primary", "account-sufficient", "account-narrow", "clock", "latency"} {
		wantStatus(t, all, check, StatusPass)
	}
	if f := all["account-narrow"]; contains(f.Detail, "flushall") {
		t.Errorf("FLUSHALL was tried: %s", f.Detail)
	}
}

// permissive is a server where two accounts have these rules, and root may
// everything.
func permissive(t *testing.T, limiter, inspector string, args ...string) (Config, InspectOption, *redis.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	text := "user default off\nuser root on >root ~* &* +@all\nuser stint on >limit " + limiter + "\nuser stint-inspect on >inspect " + inspector + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := patient(redistest.Start(t, append([]string{"--aclfile", file}, args...)...).Addr())
	c.Username, c.Password = LimiterAccount, "limit"
	silenceClient()
	root := redis.NewClient(&redis.Options{Addr: c.Addresses[0], Username: "root", Password: "root", Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = root.Close() })
	return c, WithInspector(InspectionAccount, "inspect"), root
}

// Both ways to find out agree: asking the server, and trying.
func TestEachRuleThatIsMissingIsNamed(t *testing.T) {
	c, inspector, root := permissive(t, limiterRules("stint"), inspectionRules(), "--cluster-enabled", "yes")
	for _, g := range append(limiterGrants(""), clusterGrants...) {
		t.Run(g.name(), func(t *testing.T) {
			rule := "-" + g.name()
			if err := root.Do(t.Context(), "acl", "setuser", LimiterAccount, rule).Err(); err != nil {
				t.Fatal(err)
			}
			defer root.Do(context.Background(), "acl", "setuser", LimiterAccount, g.rule)
			for way, all := range map[string]map[string]Finding{"asked": findings(t, c, inspector), "tried": findings(t, c)} {
				f := all["account-sufficient"]
				if f.Status != StatusFail || !strings.HasSuffix(f.Detail, ": "+g.name()) || !contains(f.Advice, "stint acl") {
					t.Errorf("%s: %v, %s, %s", way, f.Status, f.Detail, f.Advice)
				}
			}
		})
	}
}

func TestEachRuleTooManyIsNamed(t *testing.T) {
	for extra, names := range map[string]string{
		"+eval":         "eval",
		"+config|get":   "config|get",
		"~not-stint:*":  "keys such as not-stint:doctor",
		"~stint*":       "keys such as stint2:doctor",
		"%R~other:* ~*": "keys such as not-stint:doctor, keys such as stint2:doctor",
	} {
		t.Run(extra, func(t *testing.T) {
			c, inspector, _ := permissive(t, limiterRules("stint")+" "+extra, inspectionRules())
			for way, all := range map[string]map[string]Finding{"asked": findings(t, c, inspector), "tried": findings(t, c)} {
				f := all["account-narrow"]
				if f.Status != StatusWarn || !strings.HasSuffix(f.Detail, ": "+names) {
					t.Errorf("%s: %v, %s; want %s", way, f.Status, f.Detail, names)
				}
			}
		})
	}
}

// Without any one of its rules the inspection account sees less.
func TestEachRuleOfTheInspectionAccountIsNeeded(t *testing.T) {
	c, inspector, root := permissive(t, limiterRules("stint"), inspectionRules(), "--cluster-enabled", "yes")
	ctx := context.Background()
	if err := root.ClusterAddSlotsRange(ctx, 0, slotCount-1).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is whole", func() bool { return contains(root.ClusterInfo(ctx).Val(), "cluster_state:ok") })
	unseen := func() (n int) {
		for _, f := range findings(t, c, inspector) {
			if contains(f.Detail, "could not look") {
				n++
			}
		}
		return n
	}
	if n := unseen(); n != 0 {
		t.Errorf("%d checks could not be made with all rules", n)
	}
	for _, g := range inspectionGrants {
		if err := root.Do(ctx, "acl", "setuser", InspectionAccount, "-"+g.name()).Err(); err != nil {
			t.Fatal(err)
		}
		if g.name() == "acl|dryrun" {
			if f := findings(t, c, inspector)["account-narrow"]; contains(f.Detail, "flushall") {
				t.Errorf("%s: %s", g.name(), f.Detail)
			}
		} else if unseen() == 0 {
			t.Errorf("nothing needs %s", g.rule)
		}
		if err := root.Do(ctx, "acl", "setuser", InspectionAccount, g.rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnInspectionWritesNothing(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	s := open(t, patient(server.Addr()))
	single, _ := anyPolicies(t)
	for _, p := range single {
		spendOnce(t, s, admin, p, epoch, 1)
		if err := admin.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
	admin.Set(ctx, "stint:doctor", "theirs", time.Hour)
	admin.Set(ctx, "not-stint:doctor", "theirs", 0)
	before, changes := everything(t, admin), fields(admin.Info(ctx, "persistence").Val())["rdb_changes_since_last_save"]
	settings := admin.ConfigGet(ctx, "*").Val()
	findings(t, patient(server.Addr())) // under an account that may everything
	if diff := cmp.Diff(before, everything(t, admin)); diff != "" {
		t.Errorf("keys changed:\n%s", diff)
	}
	if now := fields(admin.Info(ctx, "persistence").Val())["rdb_changes_since_last_save"]; now != changes {
		t.Errorf("%s changes, %s before", now, changes)
	}
	if diff := cmp.Diff(settings, admin.ConfigGet(ctx, "*").Val()); diff != "" {
		t.Errorf("settings changed:\n%s", diff)
	}
}

func TestAServerThatCannotBeUsed(t *testing.T) {
	gone := redistest.Start(t)
	gone.Stop()
	c, inspector := deployed(t, ACLFor70)
	wrong := c
	wrong.Password = "hunter2"
	tests := map[string]struct {
		config  Config
		options []InspectOption
		detail  string
		advice  string
		checks  bool // others were made
	}{
		"no server":                     {patient(gone.Addr()), nil, "refused", "start it", false},
		"a wrong password":              {wrong, nil, "WRONGPASS", "correct username and password", false},
		"a wrong password, inspected":   {wrong, []InspectOption{inspector}, "WRONGPASS", "stint acl", true},
		"no account where one is asked": {patient(c.Addresses[0]), nil, "NOAUTH", "stint acl", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := findings(t, tt.config, tt.options...)
			wantStatus(t, all, "reachable", StatusFail)
			if f := all["reachable"]; !contains(f.Detail, tt.detail) || !contains(f.Advice, tt.advice) {
				t.Errorf("%s; %s", f.Detail, f.Advice)
			}
			if _, made := all["eviction"]; made != tt.checks {
				t.Errorf("%v", all)
			}
			if _, made := all["latency"]; made {
				t.Error("peeks were made")
			}
			for _, secret := range []string{"hunter2", "limit\"", "inspect\""} {
				if contains(fmt.Sprintf("%q", all), secret) {
					t.Errorf("%q is told", secret)
				}
			}
		})
	}
}

// A right inspection account beside a wrong one, and the other way round.
func TestAWrongInspectionAccount(t *testing.T) {
	c, _ := deployed(t, ACLFor70)
	all := findings(t, c, WithInspector(InspectionAccount, "hunter2"))
	wantStatus(t, all, "reachable", StatusPass)
	wantStatus(t, all, "eviction", StatusWarn)
	if f := all["eviction"]; !contains(f.Advice, "correct the username and the password") {
		t.Error(f.Advice)
	}
	if contains(fmt.Sprint(all), "hunter2") {
		t.Errorf("the password is told: %v", all)
	}
}

func TestInspectNamesEveryProblemOfItsConfiguration(t *testing.T) {
	found, err := Inspect(context.Background(), Config{Addresses: []string{"nowhere"}, Senders: -1})
	if err == nil || !contains(err.Error(), "Addresses[0]") || !contains(err.Error(), "Senders") || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func TestAReplicaIsNoPrimary(t *testing.T) {
	primary := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(primary.Addr(), ":")
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	copied, sent := inspect(t, replica.Addr()), inspect(t, primary.Addr())
	eventually(t, "both find the replica synchronised", func() bool {
		ctx := context.Background()
		return contains(copied.Info(ctx, "replication").Val(), "master_link_status:up") && contains(sent.Info(ctx, "replication").Val(), "state=online")
	})
	all := findings(t, patient(replica.Addr()))
	wantStatus(t, all, "primary", StatusFail)
	wantStatus(t, all, "latency", StatusFail)
	if f := all["latency"]; !contains(f.Detail, "READONLY") {
		t.Error(f.Detail)
	}
	all = findings(t, patient(primary.Addr()))
	wantStatus(t, all, "replicas", StatusPass)
	wantStatus(t, all, "min-replicas-to-write", StatusWarn)
}

func TestAServerThatAsksForMoreReplicasThanThereAre(t *testing.T) {
	all := findings(t, patient(redistest.Start(t, "--min-replicas-to-write", "1").Addr()))
	wantStatus(t, all, "latency", StatusFail)
	if f := all["latency"]; !contains(f.Detail, "10 of 10 peeks failed") || !contains(f.Detail, "NOREPLICAS") {
		t.Error(f.Detail)
	}
	wantStatus(t, all, "min-replicas-to-write", StatusFail)
}

func TestAFullServer(t *testing.T) {
	all := findings(t, patient(redistest.Start(t, "--maxmemory", "1mb").Addr()))
	wantStatus(t, all, "memory", StatusFail)
}
