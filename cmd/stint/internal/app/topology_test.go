package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/redisstore"
)

// onServers is three requests for an address and two for a key, on whatever
// the store's settings say.
const onServers = `
deadline: 20s
store: {redis: {prefix: e2e, command_timeout: 10s, %s}}
identity:
  pseudonym_keys: [{version: 1, file: key.txt}]
  trusted_proxies: [127.0.0.0/8]
policies:
  - {id: tenant, limits: [{token-bucket: {capacity: 2, refill: 1, every: 1h}}]}
  - {id: address, limits: [{token-bucket: {capacity: 3, refill: 1, every: 1h}}]}
routes:
  - {id: key, match: /key, charge: [{policy: tenant, subject: api-key}, {policy: address, subject: client-ip}]}
default: {charge: [{policy: address, subject: client-ip}]}
`

// secretFile writes a secret and returns the file's name.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// checkDecides sends requests of several callers: each has a budget, and what
// is refused spends nothing.
func checkDecides(t *testing.T, s *running) {
	t.Helper()
	eventually(t, patience, "ready", func() bool { return s.operator("/readyz").status == 200 })
	for caller := range 24 { // so many that no node of three is left out by chance
		address := fmt.Sprintf("192.0.2.%d", caller+1)
		ask := func(path string, want int) {
			t.Helper()
			r := s.do("GET", path, "X-Forwarded-For", address, "X-API-Key", "key of "+address)
			if r.status != want {
				t.Errorf("%s %s: %d %s, want %d", address, path, r.status, r.body, want)
			}
		}
		ask("/key", 200)
		ask("/key", 200)
		ask("/key", 429) // the key's
		ask("/", 200)    // spends what the refusal left of the address's
		ask("/", 429)
	}
}

// C39: TLS and passwords, different ones, on both the Sentinel and the
// servers; certificates carry a name while the Sentinel announces addresses.
func TestServingFromBehindASentinelWithTLS(t *testing.T) {
	ca := redistest.NewAuthority(t)
	cert := ca.Issue("redis.test", time.Now().Add(time.Hour))
	primary := redistest.StartTLS(t, cert, "--requirepass", "data-secret")
	sentinel := redistest.StartSentinelTLS(t, cert, "orders", primary,
		"sentinel auth-pass NAME data-secret", "requirepass sentinel-secret")
	s := start(t, fmt.Sprintf(onServers, fmt.Sprintf(`
    sentinel: {master: orders, addresses: ["127.0.0.1:1", "%s"], password_file: %s},
    password_file: %s,
    tls: {ca_file: %s, server_name: redis.test}`,
		sentinel.Addr(), secretFile(t, "sentinel-secret"), secretFile(t, "data-secret"), ca.File)))
	checkDecides(t, s)
}

func TestServingFromAURLWithTLS(t *testing.T) {
	ca := redistest.NewAuthority(t)
	server := redistest.StartTLS(t, ca.Issue("redis.test", time.Now().Add(time.Hour)), "--requirepass", "p@ss:/word")
	s := start(t, fmt.Sprintf(onServers, fmt.Sprintf("url_file: %s, tls: {ca_file: %s, server_name: redis.test}",
		secretFile(t, "rediss://:p%40ss%3A%2Fword@"+server.Addr()+"/0"), ca.File)))
	checkDecides(t, s)
}

func TestServingFromACluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3, 0, 5*time.Second)
	s := start(t, fmt.Sprintf(onServers, fmt.Sprintf(`cluster: true, addresses: ["127.0.0.1:1", "redis://%s"]`, nodes[1].Addr())))
	checkDecides(t, s)
	for _, n := range nodes {
		if n.CLI("dbsize") == "0" {
			t.Errorf("%s has nothing to decide", n.Addr())
		}
	}
}

// What the configuration accepts is accepted by the store: there is one idea of
// a URL, of an account and of who excludes whom.
func TestTheStoreAcceptsWhatTheConfigurationDoes(t *testing.T) {
	settings := []string{
		`addresses: ["127.0.0.1:1"]`, `addresses: ["redis://127.0.0.1"]`, `addresses: ["rediss://127.0.0.1:1/0"]`,
		`addresses: ["redis://[::1]:1/"]`, `addresses: ["redis://:@127.0.0.1:1"]`, `addresses: ["redis://@127.0.0.1:1"]`,
		`addresses: ["127.0.0.1:1"], cluster: true`, `addresses: ["127.0.0.1:1", "rediss://127.0.0.1:2"], cluster: true`,
		`sentinel: {master: m, addresses: ["127.0.0.1:1"]}`,
	}
	for _, url := range []string{
		"redis://127.0.0.1:1", "redis://u:p@127.0.0.1:1", "redis://:p@127.0.0.1:1", "redis://u@127.0.0.1:1", "redis://u:@127.0.0.1:1",
		"redis://u:%@127.0.0.1:1", "redis://u:p@127.0.0.1:1/1", "redis://u:p@:1", "redis://u:p@h:0", "redis://u:p@h:", "redis://u:p@h:x",
		"redis:h:1", "redis:///0", "REDIS://u:p@127.0.0.1:1", "unix:///run/redis", "redis://u:p@h?a=b", "redis://u:p@h#a", "redis://u:a b@h:1",
		"redis://u:p:q@127.0.0.1:1", "redis://u:p@q@127.0.0.1:1", "redis://u:%00@127.0.0.1:1", "redis://[::1%25lo]:1",
	} {
		settings = append(settings, "url_file: "+secretFile(t, url))
	}
	accounts := []string{"", ", password_file: " + secretFile(t, "p"), ", username: v, password_file: " + secretFile(t, "p"), ", tls: {}"}
	accepted := 0
	for _, where := range settings {
		for _, account := range accounts {
			name := filepath.Join(t.TempDir(), "stint.yaml")
			key := "identity: {pseudonym_keys: [{version: 1, file: " + secretFile(t, strings.Repeat("QUJD", 11)) + "}]}\n"
			text := "store: {redis: {" + where + account + "}}\npolicies: [{id: p, limits: [{fixed-window: {limit: 1, window: 1h}}]}]\ndefault: {charge: []}\n"
			c, err := config.Parse(name, []byte(key+text), config.Overrides{})
			if err != nil {
				continue
			}
			accepted++
			s, err := redisstore.Open(RedisConfig(c.Store.Redis))
			if err != nil {
				t.Errorf("%s%s: the configuration is accepted, and then: %v", where, account, err)
				continue
			}
			_ = s.Close()
		}
	}
	if accepted < 30 {
		t.Errorf("only %d of %d were accepted", accepted, len(settings)*len(accounts))
	}
}
