package app

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/redistest"
)

// TestAFailingServerTellsNoSecret runs servers whose store refuses them, each
// for another reason, and looks for passwords and keys in everything that they
// say.
func TestAFailingServerTellsNoSecret(t *testing.T) {
	const wrong, wrongURL = "Zq9:Zq9/Zq9@", "Zq9%3AZq9%2FZq9%40"
	ca, stranger := redistest.NewAuthority(t), redistest.NewAuthority(t)
	cert := ca.Issue("redis.test", time.Now().Add(time.Hour))
	plain := redistest.Start(t, "--requirepass", "right")
	secured := redistest.StartTLS(t, cert, "--requirepass", "right")
	sentinel := redistest.StartSentinel(t, "orders", plain, "requirepass right")
	own := ca.Issue("stint", time.Now().Add(time.Hour))
	certFile, keyFile := own.Files()
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"Zq9"}
	for line := range strings.Lines(string(key)) {
		if !strings.HasPrefix(line, "-----") {
			secrets = append(secrets, strings.TrimSpace(line))
		}
	}
	password := secretFile(t, wrong)
	url := func(scheme, addr string) string { return secretFile(t, scheme+"://stint:"+wrongURL+"@"+addr) }
	for name, settings := range map[string]string{
		"a wrong password":                fmt.Sprintf(`addresses: ["%s"], password_file: %s`, plain.Addr(), password),
		"an unknown user":                 fmt.Sprintf(`addresses: ["%s"], username: nobody, password_file: %s`, plain.Addr(), password),
		"a wrong password in a URL":       "url_file: " + url("redis", plain.Addr()),
		"a host that is not there":        "url_file: " + url("redis", "no-such-host.invalid:6379"),
		"nobody listens":                  "url_file: " + url("rediss", "127.0.0.1:1"),
		"TLS to a server without":         "url_file: " + url("rediss", plain.Addr()),
		"no TLS to a server with it":      "url_file: " + url("redis", secured.Addr()),
		"a wrong password under TLS":      fmt.Sprintf("url_file: %s, tls: {ca_file: %s, server_name: redis.test}", url("rediss", secured.Addr()), ca.File),
		"an authority that is not ours":   fmt.Sprintf("url_file: %s, tls: {ca_file: %s, server_name: redis.test, cert_file: %s, key_file: %s}", url("rediss", secured.Addr()), stranger.File, certFile, keyFile),
		"another name":                    fmt.Sprintf("url_file: %s, tls: {ca_file: %s, cert_file: %s, key_file: %s}", url("rediss", secured.Addr()), ca.File, certFile, keyFile),
		"a wrong password for a Sentinel": fmt.Sprintf(`sentinel: {master: orders, addresses: ["%s"], username: watcher, password_file: %s}, password_file: %[2]s`, sentinel.Addr(), password),
		"a wrong password behind one":     fmt.Sprintf(`sentinel: {master: orders, addresses: ["%s"], password_file: %s}, password_file: %s`, sentinel.Addr(), secretFile(t, "right"), password),
		"no Cluster, and a wrong password": fmt.Sprintf(`cluster: true, addresses: ["%s", "redis://127.0.0.1:1"], username: nobody, password_file: %s`,
			plain.Addr(), password),
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, strings.NewReplacer("20s", "500ms", "10s", "250ms").Replace(fmt.Sprintf(onServers, settings)))
			var said strings.Builder
			for range 3 {
				r := s.do("GET", "/")
				if r.status != 503 {
					t.Errorf("%d %s", r.status, r.body)
				}
				fmt.Fprint(&said, r.header, r.body)
			}
			eventually(t, patience, "the log says that the store is gone", func() bool { return s.log.count("the store is not reachable") > 0 })
			for _, page := range []string{"/readyz", "/livez", "/metrics"} {
				fmt.Fprint(&said, s.operator(page).body)
			}
			if !s.counted(`stint_decisions_total{outcome="unavailable",policy="address"} 3`) {
				t.Error("not counted as unavailable")
			}
			s.end()
			for _, secret := range secrets {
				if strings.Contains(said.String(), secret) || s.log.count(secret) > 0 {
					t.Errorf("%q is told:\n%s\n%s", secret, &said, &s.log.b)
				}
			}
		})
	}
	if len(secrets) < 3 {
		t.Error("there is no key to look for")
	}
}
