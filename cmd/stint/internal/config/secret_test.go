package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsShowNowhere(t *testing.T) {
	c := mustLoad(t, "testdata/good/everything.yaml", Overrides{})
	password := c.Store.Redis.Password
	if password.Reveal() != "a password for tests" {
		t.Fatal("the password was not read")
	}
	clustered := mustLoad(t, "testdata/good/cluster.yaml", Overrides{}).Store
	watched := mustLoad(t, "testdata/good/sentinel.yaml", Overrides{}).Store
	addressed := mustLoad(t, "testdata/good/url.yaml", Overrides{}).Store
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, s := range []Store{clustered, watched, addressed} {
			fmt.Fprintf(&out, verb, s)
			fmt.Fprintf(&out, verb, *s.Redis)
		}
		fmt.Fprintf(&out, verb, clustered.Redis.TLS)
		fmt.Fprintf(&out, verb, *watched.Redis.Sentinel)
		fmt.Fprintf(&out, verb, password)
		fmt.Fprintf(&out, verb, *c.Store.Redis)
		fmt.Fprintf(&out, verb, c.Identity)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("config", "redis", c.Store.Redis, "identity", c.Identity, "password", password)
	for _, s := range []Store{c.Store, clustered, watched, addressed} {
		slog.New(slog.NewTextHandler(&out, nil)).Info("config", "store", s, "redis", s.Redis, "tls", s.Redis.TLS)
		if err := json.NewEncoder(&out).Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	key, err := os.ReadFile("testdata/good/secrets/key.txt")
	if err != nil {
		t.Fatal(err)
	}
	hidden := []string{"a password", strings.TrimSpace(string(key)), "a key for tests", fmt.Sprintf("%x", "a password"), "p@ss", "p%40ss"}
	for _, secret := range append(hidden, keyLines(t, "testdata/good/secrets/client.key")...) {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q shows in:\n%s", secret, &out)
		}
	}
}

// keyLines returns the lines of base64 in a PEM file.
func keyLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); len(line) >= 32 && !strings.Contains(line, " ") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s holds no key", file)
	}
	return lines
}

// The bad files put secrets in every wrong place; no message may repeat one.
func TestMessagesRepeatNoSecret(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	secrets := append(keyLines(t, "testdata/bad/secrets/other.key"), "hunter", "c2VjcmV0IGtleSBtYXRlcmlhbC", "c2hvcnQ")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(problemLines(t, file, data), "\n")
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q shows in:\n%s", file, secret, text)
			}
		}
	}
}
