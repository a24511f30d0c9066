package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/redisstore"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// deployed starts a server with the accounts that stint acl prints, and others
// for its replica and for the test. Rules are edited by edit.
func deployed(t *testing.T, edit func(string) string, args ...string) *redistest.Server {
	t.Helper()
	text, err := redisstore.ACL(redisstore.ACLFor70, "")
	if err != nil {
		t.Fatal(err)
	}
	for placeholder, password := range map[string]string{"LIMITER": "limit", "INSPECTION": "inspect"} {
		sum := sha256.Sum256([]byte(password))
		text = strings.Replace(text, "SHA256-OF-THE-"+placeholder+"-PASSWORD", hex.EncodeToString(sum[:]), 1)
	}
	text = edit(text) + "user replica on >replica +psync +replconf +ping\nuser root on >root ~* &* +@all\n"
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return redistest.Start(t, append([]string{"--aclfile", file, "--maxmemory", "100mb", "--appendonly", "yes"}, args...)...)
}

func asPrinted(rules string) string { return rules }

// root runs a command with redis-cli.
func root(t *testing.T, addr string, args ...string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command("redis-cli", append([]string{"-e", "-h", host, "-p", port, "--user", "root", "--pass", "root", "--no-auth-warning"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func inspect(t *testing.T, server *redistest.Server, options ...redisstore.InspectOption) []redisstore.Finding {
	t.Helper()
	return inspectAs(t, redisstore.Config{
		Addresses: []string{server.Addr()}, Username: redisstore.LimiterAccount, Password: "limit",
		Clock: redisstore.CallerClock, CommandTimeout: 20 * time.Second,
	}, options...)
}

func inspectAs(t *testing.T, c redisstore.Config, options ...redisstore.InspectOption) []redisstore.Finding {
	t.Helper()
	found, err := redisstore.Inspect(context.Background(), c, append([]redisstore.InspectOption{redisstore.WithInspector(redisstore.InspectionAccount, "inspect")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What changes from run to run, or with the server's version.
var normal = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(Redis|Valkey) \d+\.\d+\.\d+`), "Redis <version>"},
	{regexp.MustCompile(`[\d.]+ MB of 104.9 MB in use \(\d+%\)`), "<some> of 104.9 MB in use"},
	{regexp.MustCompile(`\d+ s ago, \d+ bytes behind`), "<a moment> ago, <some> bytes behind"},
	{regexp.MustCompile(`within [\d.]+(µs|ms|s), 99% within [\d.]+(µs|ms|s), all within [\d.]+(µs|ms|s)`), "within <time>, 99% within <time>, all within <time>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<address>"},
	{regexp.MustCompile(`NOPERM [^→\n]*?( →|"|$)`), "NOPERM <in the server's words>$1"},
	{regexp.MustCompile(`CLUSTERDOWN [^→\n]*?( →|"|$)`), "CLUSTERDOWN <in the server's words>$1"},
	{regexp.MustCompile(`the caller's clock[^→\n]*?( →|"|$)`), "<by how much>$1"},
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	for _, n := range normal {
		got = n.pattern.ReplaceAll(got, []byte(n.with))
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if it is right: go test ./cmd/stint/internal/doctor -update\n%s", path, diff)
	}
}

func text(t *testing.T, found []redisstore.Finding) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteText(&b, found); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"limit\"", "inspect\"", ">limit", ">inspect"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("a password is told:\n%s", &b)
		}
	}
	return b.Bytes()
}

func TestAGoodServer(t *testing.T) {
	server := deployed(t, asPrinted, "--min-replicas-to-write", "1", "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(server.Addr())
	redistest.Start(t, "--replicaof", host+" "+port, "--masteruser", "replica", "--masterauth", "replica")
	deadline := time.Now().Add(20 * time.Second)
	healthy := func() bool {
		for _, f := range inspect(t, server) {
			if f.Status > redisstore.StatusInfo {
				return false
			}
		}
		return true
	}
	for !healthy() && time.Now().Before(deadline) {
	}
	found := inspect(t, server)
	golden(t, "good.txt", text(t, found))
	if n := Failed(found); n != 0 {
		t.Errorf("%d failed", n)
	}
}

// Each fault that an operator can make, and what doctor says of it.
func TestFaults(t *testing.T) {
	for name, server := range map[string]func(*testing.T) *redistest.Server{
		"allkeys-lru": func(t *testing.T) *redistest.Server {
			return deployed(t, asPrinted, "--maxmemory-policy", "allkeys-lru")
		},
		"without-evalsha": func(t *testing.T) *redistest.Server {
			return deployed(t, func(rules string) string { return strings.Replace(rules, " +evalsha", "", 1) })
		},
		"may-eval": func(t *testing.T) *redistest.Server {
			return deployed(t, func(rules string) string { return strings.Replace(rules, " +evalsha", " +eval +evalsha", 1) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name+".txt", text(t, inspect(t, server(t))))
		})
	}
}

func TestAClusterWithASlotUncovered(t *testing.T) {
	server := deployed(t, asPrinted, "--cluster-enabled", "yes")
	root(t, server.Addr(), "cluster", "addslotsrange", "0", "8190", "8192", "16383")
	golden(t, "slot-uncovered.txt", text(t, inspectAs(t, redisstore.Config{
		Addresses: []string{server.Addr()}, Cluster: true, Username: redisstore.LimiterAccount, Password: "limit", CommandTimeout: 2 * time.Second,
	})))
}

func TestAClockTenSecondsOff(t *testing.T) {
	fast := redisstore.WithHostClock(func() time.Time { return time.Now().Add(10 * time.Second) })
	golden(t, "clock.txt", text(t, inspect(t, deployed(t, asPrinted), fast)))
}

func TestJSON(t *testing.T) {
	found := inspect(t, deployed(t, asPrinted, "--maxmemory-policy", "allkeys-lru"))
	var b bytes.Buffer
	if err := WriteJSON(&b, found); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("is not JSON")
	}
	golden(t, "allkeys-lru.json", b.Bytes())
}

func TestSeveralServersAreNamed(t *testing.T) {
	found := []redisstore.Finding{
		{Check: "clock", Node: "a:1", Status: redisstore.StatusPass, Detail: "same"},
		{Check: "clock", Node: "b:1", Status: redisstore.StatusWarn, Detail: "other\nPASS  clock", Advice: "look\x1b[0m"},
	}
	const want = "PASS  clock  a:1: same\n" +
		"WARN  clock  b:1: other PASS  clock → look [0m\n" +
		"2 checks: 1 pass, 0 info, 1 warn, 0 fail\n"
	if diff := cmp.Diff(want, string(text(t, found))); diff != "" {
		t.Error(diff)
	}
}
