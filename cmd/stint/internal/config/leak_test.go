package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marked is what every secret of this test is made of: three characters of one
// in a message are found.
const marked = "Zq9"

// TestNoMistakeShowsASecret puts secrets where they do not belong, and damages
// the files that hold them, in some thousand ways.
func TestNoMistakeShowsASecret(t *testing.T) {
	password := strings.Repeat(marked, 5)
	url := "redis://stint:" + password + "@127.0.0.1:6379"
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(marked, 20) + "\n-----END PRIVATE KEY-----\n"
	refused := 0
	try := func(redis string) {
		t.Helper()
		text := "store:\n  redis:\n" + redis + `
identity: {pseudonym_keys: [{version: 1, file: secrets/key.txt}]}
policies: [{id: api, limits: [{fixed-window: {limit: 10, window: 1m}}]}]
default: {charge: [{policy: api, subject: client-ip}]}
`
		_, err := parse("testdata/good/mistaken.yaml", []byte(text), Overrides{}, testEnv)
		if err == nil {
			return
		}
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Fatalf("%v\n%s", err, text)
		}
		refused++
		if strings.Contains(err.Error(), marked) {
			t.Errorf("%v\n%s", err, text)
		}
	}

	for _, value := range []string{url, strings.Replace(url, "redis:", "rediss:", 1), password + "@127.0.0.1:6379", "%" + url, url + "/3", url + "?", pem} {
		quoted := fmt.Sprintf("%q", value)
		block := "|\n          " + strings.ReplaceAll(value, "\n", "\n          ")
		for _, form := range []string{quoted, block, "[" + quoted + "]", "{" + quoted + ": " + quoted + "}", value} {
			for _, key := range []string{"addresses", "url_file", "url_env", "url", "password_file", "password_env", "password", "cluster", "sentinel", "tls", value} {
				try("    " + key + ": " + form)
			}
			for _, key := range []string{"addresses", "password", "password_file", "password_env", value} {
				try("    sentinel:\n      master: orders\n      " + key + ": " + form)
			}
			for _, key := range []string{"ca_file", "cert_file", "key_file", "key", "server_name", value} {
				try("    addresses: [\"127.0.0.1:1\"]\n    tls:\n      cert_file: secrets/client.pem\n      " + key + ": " + form)
			}
		}
	}

	file := filepath.Join(t.TempDir(), "secret")
	written := func(text string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for i := range len(url) {
		for _, damaged := range []string{url[:i], url[i:], url[:i] + "%" + url[i:], url[:i] + " \x00" + url[i:], url[:i] + "/" + url[i:]} {
			try("    url_file: " + written(damaged))
			try("    url_file: " + written(damaged) + "\n    username: stint")
		}
	}
	key, err := os.ReadFile("testdata/good/secrets/client.key")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.SplitAfter(string(key), "\n") {
		for _, damaged := range []string{
			strings.Replace(string(key), line, "", 1), strings.Replace(string(key), line, strings.Repeat(marked, 20)+"\n", 1),
			strings.Replace(string(key), line, line[:len(line)/2]+marked+line[len(line)/2:], 1), pem, strings.Repeat(pem, i),
		} {
			for _, names := range []string{"cert_file: secrets/client.pem, key_file: %s", "cert_file: %[1]s, key_file: %[1]s", "ca_file: %s"} {
				try("    addresses: [\"127.0.0.1:1\"]\n    tls: {" + fmt.Sprintf(names, written(damaged)) + "}")
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d mistakes were refused", refused)
	}
}
