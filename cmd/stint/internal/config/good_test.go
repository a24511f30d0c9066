package config

import (
	"crypto/tls"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/breaker"
	"github.com/stintlimit/stint/subject"
)

// testEnv is the environment that files of testdata/good name.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"STINT_TEST_PASSWORD": "a password for tests",
		"STINT_TEST_KEY":      "YW5vdGhlciBrZXkgZm9yIHRlc3RzLCBhbmQgbm90aGluZyBlbHNl",
	}[name]
	return v, ok
}

func mustLoad(t *testing.T, file string, o Overrides) *Config {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse(file, data, o, testEnv)
	if err != nil {
		t.Fatalf("%s is refused:\n%v", file, err)
	}
	return c
}

var compare = cmp.Options{
	cmpopts.IgnoreUnexported(stint.Policy{}),
	cmp.Comparer(func(a, b Secret) bool { return a.Reveal() == b.Reveal() }),
	cmp.Comparer(func(a, b TLS) bool { return a.Client() == b.Client() }),
	cmp.Comparer(func(a, b subject.Key) bool { return a.Version() == b.Version() }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func TestGoodFilesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d good files (%v)", len(files), err)
	}
	for _, file := range files {
		mustLoad(t, file, Overrides{})
	}
}

func TestEverythingIsRead(t *testing.T) {
	key, err := subject.ParseKey(1, subject.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	got := mustLoad(t, "testdata/good/everything.yaml", Overrides{})
	want := &Config{
		Listen:       "127.0.0.1:8080",
		AdminListen:  "127.0.0.1:8081",
		Upstream:     &url.URL{Scheme: "http", Host: "127.0.0.1:3000"},
		Deadline:     750 * time.Millisecond,
		DrainTimeout: 10 * time.Second,
		RetryAfter:   time.Second,
		Store: Store{Redis: &Redis{
			Addresses: []string{"127.0.0.1:6379"}, Username: "stint", Password: NewSecret("a password for tests"),
			Prefix: "stint", CommandTimeout: 250 * time.Millisecond, MaximumClockSkew: 2 * time.Second,
			Breaker: Breaker{Failures: 5, Cooldown: 500 * time.Millisecond},
		}},
		Identity: Identity{
			Keys: []subject.Key{key}, ActiveVersion: 1,
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			ClientIPHeader: "X-Forwarded-For", APIKeyHeader: "X-Api-Key", PrincipalHeader: "X-Auth-User",
		},
		Policies: []stint.Policy{
			{
				ID: "api", Revision: 1, MaximumCost: 10,
				Limits: []stint.Limit{
					stint.TokenBucket{Capacity: 100, Refill: 10, Every: time.Second},
					stint.FixedWindow{Limit: 10000, Window: 24 * time.Hour, Name: "daily"},
				},
				MaximumClockRegression: 5 * time.Second, CleanupGrace: 30 * time.Second,
				Dedup: stint.Dedup{TTL: 5 * time.Second, MaxEntries: 256, MaxBytes: 65536},
			},
			{
				ID: "address", Revision: 1,
				Limits:                 []stint.Limit{stint.SlidingCounter{Limit: 600, Window: time.Minute}},
				MaximumClockRegression: 5 * time.Second, CleanupGrace: 30 * time.Second,
				Dedup: stint.Dedup{TTL: 5 * time.Second, MaxEntries: 256, MaxBytes: 65536},
			},
		},
		Exempt: Exempt{Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Paths: []string{"/healthz"}},
		Routes: []Route{{ID: "orders", Match: "POST /orders/{id}", Cost: 1, Charges: []Charge{
			{Policy: "api", Subject: subject.APIKey, SkipMissing: true, IPv6Prefix: 64},
			{Policy: "address", Subject: subject.ClientIP, IPv6Prefix: 64},
		}}},
		Default: []Charge{{Policy: "address", Subject: subject.ClientIP, IPv6Prefix: 64}},
		Digest:  got.Digest,
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	if len(got.Digest) != 16 {
		t.Errorf("digest %q", got.Digest)
	}
}

func TestWhereRedisIsCanBeSaidInThreeWays(t *testing.T) {
	load := func(name string) *Redis { return mustLoad(t, "testdata/good/"+name+".yaml", Overrides{}).Store.Redis }
	c := load("cluster")
	if want := []string{"10.0.0.1:6379", "rediss://redis-2.internal", "[2001:db8::3]:6379"}; !c.Cluster || !slices.Equal(c.Addresses, want) {
		t.Errorf("cluster %v, addresses %v", c.Cluster, c.Addresses)
	}
	if client := c.TLS.Client(); client.ServerName != "redis.internal" || client.RootCAs == nil || len(client.Certificates) != 1 ||
		client.MinVersion != tls.VersionTLS12 || client.InsecureSkipVerify {
		t.Errorf("TLS: server name %q, %d certificates", client.ServerName, len(client.Certificates))
	}
	s := load("sentinel")
	want := &Sentinel{
		Master: "orders", Addresses: []string{"10.0.0.1:26379", "10.0.0.2:26379"},
		Username: "watcher", Password: NewSecret("a password for tests"),
	}
	if diff := cmp.Diff(want, s.Sentinel, compare); diff != "" {
		t.Errorf("sentinel (-want +got):\n%s", diff)
	}
	if client := s.TLS.Client(); client.RootCAs != nil || client.ServerName != "" || client.MinVersion != tls.VersionTLS12 || client.InsecureSkipVerify {
		t.Error("tls: {} is not what the system trusts")
	}
	u := load("url")
	if got, want := u.URL.Reveal(), "rediss://stint:p%40ss%3A%2Fword@redis.internal:6380/0"; got != want || u.TLS.Client() != nil || len(u.Addresses) != 0 {
		t.Errorf("URL %q, addresses %v", got, u.Addresses)
	}
}

func TestTheBreakerIsOnUnlessItIsOff(t *testing.T) {
	if b := mustLoad(t, "testdata/good/several_keys.yaml", Overrides{}).Store.Redis.Breaker; b != (Breaker{Off: true}) {
		t.Errorf("off: %+v", b)
	}
	redis := "store: {redis: {addresses: [\"127.0.0.1:6379\"]}}\nidentity: {pseudonym_keys: [{version: 1, env: STINT_TEST_KEY}]}\n"
	least, err := os.ReadFile("testdata/good/least.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse("stint.yaml", append([]byte(redis), least...), Overrides{}, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Store.Redis.Breaker, (Breaker{Failures: breaker.DefaultFailures, Cooldown: breaker.DefaultCooldown}); got != want {
		t.Errorf("absent: %+v, want %+v", got, want)
	}
}

func TestAbsentKeysMeanTheDefaults(t *testing.T) {
	got := mustLoad(t, "testdata/good/least.yaml", Overrides{})
	want := &Config{
		Listen:       "127.0.0.1:8080",
		AdminListen:  "127.0.0.1:8081",
		Deadline:     stint.DefaultBudget,
		DrainTimeout: 10 * time.Second,
		RetryAfter:   time.Second,
		Store:        Store{Memory: &Memory{MaxSubjects: 1_000_000}},
		Identity:     Identity{APIKeyHeader: "X-Api-Key"},
		Policies: []stint.Policy{{
			ID: "api", Revision: 1,
			Limits:                 []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Minute}},
			MaximumClockRegression: stint.DefaultMaximumClockRegression,
			CleanupGrace:           stint.DefaultCleanupGrace,
			Dedup: stint.Dedup{
				TTL:        stint.DefaultDedupTTL,
				MaxEntries: stint.DefaultDedupMaxEntries,
				MaxBytes:   stint.DefaultDedupMaxBytes,
			},
		}},
		Digest: got.Digest,
	}
	if diff := cmp.Diff(want, got, compare, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestExampleIsTheOneOfTheManual(t *testing.T) {
	c, err := Example(Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	want := []stint.Limit{stint.TokenBucket{Capacity: 10, Refill: 10, Every: 10 * time.Second}}
	if diff := cmp.Diff(want, c.Policies[0].Limits); diff != "" || len(c.Policies) != 1 {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	charge := []Charge{{Policy: "example", Subject: subject.ClientIP, IPv6Prefix: 64}}
	if diff := cmp.Diff(charge, c.Default); diff != "" || c.Store.Memory == nil || len(c.Routes) != 0 {
		t.Errorf("default (-want +got):\n%s", diff)
	}
}

func TestFlagsOverrideTheFile(t *testing.T) {
	c := mustLoad(t, "testdata/good/everything.yaml", Overrides{
		Listen: "127.0.0.1:0", AdminListen: ":9000", Upstream: "https://example.org/base",
	})
	if c.Listen != "127.0.0.1:0" || c.AdminListen != ":9000" || c.Upstream.String() != "https://example.org/base" {
		t.Errorf("listen %q, admin %q, upstream %q", c.Listen, c.AdminListen, c.Upstream)
	}
}

func TestFlagsAreHeldToTheSameRules(t *testing.T) {
	_, err := Example(Overrides{Listen: "8080", AdminListen: "127.0.0.1:70000", Upstream: "http://a:hunter2@b"})
	want := `--listen: "8080" is not host:port or :port, port 0 to 65535, as in 127.0.0.1:8080 or "[::1]:8080"
--admin-listen: "127.0.0.1:70000" has no such port: host:port or :port, port 0 to 65535
--upstream: holds a user or a password: an upstream is reached without`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestAFlagCanClashWithTheFile(t *testing.T) {
	if _, err := Example(Overrides{Listen: "127.0.0.1:8081"}); err == nil {
		t.Error("two listeners share an address")
	}
}

func TestFilesAreFoundBesideTheConfiguration(t *testing.T) {
	absolute, err := filepath.Abs("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if c, err := Load(absolute, Overrides{}); err != nil || len(c.Identity.Keys) != 1 {
		t.Errorf("Load: %v", err)
	}
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(name, make([]byte, maxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(name, Overrides{}); err == nil {
		t.Error("accepted")
	}
}
