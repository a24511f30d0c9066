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
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&out, verb, password)
		fmt.Fprintf(&out, verb, *c.Store.Redis)
		fmt.Fprintf(&out, verb, c.Identity)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("config", "redis", c.Store.Redis, "identity", c.Identity, "password", password)
	if err := json.NewEncoder(&out).Encode(c.Store); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile("testdata/good/secrets/key.txt")
	if err != nil {
		t.Fatal(err)
	}
	hidden := []string{"a password", strings.TrimSpace(string(key)), "a key for tests", fmt.Sprintf("%x", "a password")}
	for _, secret := range hidden {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q shows in:\n%s", secret, &out)
		}
	}
}

// The bad files put secrets in every wrong place; no message may repeat one.
func TestMessagesRepeatNoSecret(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(problemLines(t, file, data), "\n")
		for _, secret := range []string{"hunter2", "c2VjcmV0IGtleSBtYXRlcmlhbC", "c2hvcnQ"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q shows in:\n%s", file, secret, text)
			}
		}
	}
}
