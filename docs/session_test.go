package docs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/redistest"
)

// session is what the blocks of one page share: a folder, the servers that
// they started, and what the last commands printed.
type session struct {
	t         *testing.T
	stint     string // the folder of the binary
	dir       string
	listen    string         // where stint serve listens in place of 127.0.0.1:8080
	admin     string         // and of 127.0.0.1:8081
	upstream  string         // in place of 127.0.0.1:3000; it answers 200 to everything
	reserved  []net.Listener // hold listen and admin until stint serve needs them
	redis     *redistest.Server
	server    *exec.Cmd // stint serve, if it runs
	log       *bytes.Buffer
	responses bool   // some command printed HTTP responses
	output    string // of the last sh block
}

func newSession(t *testing.T, stint string) *session {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(upstream.Close)
	s := &session{t: t, stint: stint, dir: t.TempDir(), upstream: upstream.Listener.Addr().String()}
	s.listen, s.admin = s.reserve(), s.reserve()
	t.Cleanup(s.release)
	t.Cleanup(s.stop)
	return s
}

// reserve returns a free address, which stays ours until it is released.
func (s *session) reserve() string {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.reserved = append(s.reserved, l)
	return l.Addr().String()
}

func (s *session) release() {
	for _, l := range s.reserved {
		l.Close()
	}
	s.reserved = nil
}

// relocate replaces the addresses of the documentation by those of the session.
func (s *session) relocate(text string) string {
	pairs := []string{
		"localhost:8080", s.listen, "127.0.0.1:8080", s.listen,
		"localhost:8081", s.admin, "127.0.0.1:8081", s.admin,
		"localhost:3000", s.upstream, "127.0.0.1:3000", s.upstream,
	}
	if s.redis != nil {
		_, port, _ := net.SplitHostPort(s.redis.Addr())
		pairs = append(pairs, "127.0.0.1:6379", s.redis.Addr(), "-p 6379", "-p "+port, "redis-cli ", "redis-cli -p "+port+" ")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// write makes the file that a block is.
func (s *session) write(b block) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, b.file), []byte(b.text), 0o600); err != nil {
		s.t.Fatalf("%s: %v", b, err)
	}
}

var (
	program  = regexp.MustCompile(`(go run \./cmd/stint|bin/stint)\b`)
	serve    = regexp.MustCompile(`^stint serve\b`)
	quoted   = regexp.MustCompile(`'[^']*'|"[^"]*"|\$\([^)]*\)`)
	address  = regexp.MustCompile(`https?://([^/\s:'"]+)`)
	makes    = regexp.MustCompile(`(?m)^make `)
	itself   = regexp.MustCompile(`(?m)^\./scripts/test$`)
	keywords = []string{"for", "do", "done", "if", "then", "fi", ""}
	commands = []string{
		"curl", "stint", "redis-cli", "redis-server", "make", "./scripts/test",
		"cat", "chmod", "echo", "grep", "head", "kill", "mkdir", "printf", "seq", "sort", "tail", "test", "umask",
	}
)

// shell runs the commands of a block, in order.
func (s *session) shell(b block) {
	s.t.Helper()
	s.output = ""
	var chunk []string
	run := func() {
		if len(chunk) > 0 {
			s.run(b, strings.Join(chunk, "\n"))
			chunk = nil
		}
	}
	text := program.ReplaceAllString(strings.ReplaceAll(b.text, "\\\n", " "), "stint")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, " # "); i >= 0 {
			line = strings.TrimSpace(line[:i])
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.vet(b, line)
		switch {
		case serve.MatchString(line):
			run()
			s.serve(b, strings.Fields(strings.TrimSuffix(line, "&"))[1:])
		case strings.HasPrefix(line, "redis-server"):
			run()
			s.startRedis(strings.Fields(strings.TrimSuffix(line, "&"))[1:])
		default:
			if strings.HasPrefix(line, "stint doctor") {
				s.relocateFiles(b, strings.Fields(line))
			}
			chunk = append(chunk, line)
		}
	}
	run()
}

// vet refuses a command that this test does not know, and one that would leave
// this machine.
func (s *session) vet(b block, line string) {
	s.t.Helper()
	bare := quoted.ReplaceAllString(line, "Q")
	for _, part := range strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(";|&", r) }) {
		words := strings.Fields(part)
		for len(words) > 0 && (words[0] == "do" || words[0] == "then" || words[0] == "if") {
			words = words[1:]
		}
		if len(words) > 0 && !slices.Contains(keywords, words[0]) && !slices.Contains(commands, words[0]) {
			s.t.Fatalf("%s: this test does not know how to run %q", b, words[0])
		}
	}
	for _, m := range address.FindAllStringSubmatch(line, -1) {
		if m[1] != "localhost" && m[1] != "127.0.0.1" {
			s.t.Fatalf("%s: %s is not on this machine", b, m[0])
		}
	}
}

// run runs shell commands and keeps what they print.
func (s *session) run(b block, script string) {
	s.t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		s.t.Fatal(err)
	}
	// That it exists is all that can be asked of a target inside make, and of
	// the tests inside a test.
	script = makes.ReplaceAllString(s.relocate(script), "make -n -C '"+root+"' ")
	script = itself.ReplaceAllString(script, "test -x '"+root+"/scripts/test'")
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.stint+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s\n%s%s\nstint serve said:\n%s", b, err, script, out, &stderr, s.serverLog())
	}
	s.output += string(out)
	s.responses = s.responses || strings.Contains(s.output, "HTTP/1.1 ")
}

// relocateFiles relocates the configurations that a command names: they are
// used now.
func (s *session) relocateFiles(b block, args []string) {
	s.t.Helper()
	for _, a := range args {
		if filepath.Ext(a) != ".yaml" {
			continue
		}
		path := filepath.Join(s.dir, a)
		text, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatalf("%s: %v", b, err)
		}
		if err := os.WriteFile(path, []byte(s.relocate(string(text))), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// serve starts stint in the background, in place of the one that runs.
func (s *session) serve(b block, args []string) {
	s.t.Helper()
	s.stop()
	s.relocateFiles(b, args)
	cmd := exec.Command(filepath.Join(s.stint, "stint"), append(args, "--listen", s.listen, "--admin-listen", s.admin)...)
	cmd.Dir = s.dir
	s.log = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	s.release()
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("%s: %v", b, err)
	}
	s.server = cmd
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready(s.admin) {
		select {
		case <-deadline.C:
			s.stop()
			s.t.Fatalf("%s: stint serve is not ready:\n%s", b, s.serverLog())
		case <-tick.C:
		}
	}
}

func ready(admin string) bool {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get("http://" + admin + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// stop ends the running stint serve as an operator would.
func (s *session) stop() {
	if s.server == nil {
		return
	}
	_ = s.server.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = s.server.Process.Kill() })
	defer kill.Stop()
	if err := s.server.Wait(); err != nil {
		s.t.Errorf("stint serve ended with %v:\n%s", err, s.log)
	}
	s.server = nil
}

// serverLog is what the server that was stopped last printed. One that runs is
// stopped first, so that its buffer is at rest.
func (s *session) serverLog() string {
	s.stop()
	if s.log == nil {
		return ""
	}
	return s.log.String()
}

// startRedis starts the Redis of the page, with the arguments shown but for
// its port.
func (s *session) startRedis(args []string) {
	s.t.Helper()
	if i := slices.Index(args, "--port"); i >= 0 {
		args = slices.Delete(args, i, i+2)
	}
	s.redis = redistest.Start(s.t, args...)
}

// acl asks a Redis whether it accepts a rule.
func (s *session) acl(b block) {
	s.t.Helper()
	if s.redis == nil {
		s.redis = redistest.Start(s.t)
	}
	_, port, _ := net.SplitHostPort(s.redis.Addr())
	for _, line := range b.lines() {
		rule := strings.Fields(strings.TrimPrefix(line, "user "))
		out, err := exec.Command("redis-cli", append([]string{"-p", port, "ACL", "SETUSER"}, rule...)...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "OK" {
			s.t.Errorf("%s: Redis refuses it: %s (%v)", b, out, err)
		}
	}
}

var (
	topLevel = regexp.MustCompile(`(?m)^([a-z_]+):`)
	fileRef  = regexp.MustCompile(`\b(?:password_)?file: *"?([^,}\]\s"]+)`)
	envRef   = regexp.MustCompile(`\b(?:password_)?env: *"?([A-Za-z_][A-Za-z0-9_]*)`)
	pemRef   = regexp.MustCompile(`\b(ca|cert|key)_file: *"?([^,}\]\s"]+)`)
)

// pems are files of the configuration's own tests, which `tls` accepts.
var pems = map[string]string{"ca": "ca.pem", "cert": "client.pem", "key": "client.key"}

// check runs stint check on a configuration. The files and variables that it
// refers to are made up; a part of a configuration is completed.
func (s *session) check(b block) {
	s.t.Helper()
	text := b.text
	if b.file == "" {
		text = complete(text)
	}
	dir := s.t.TempDir()
	for _, m := range fileRef.FindAllStringSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(m[1])), []byte(secret(m[1])+"\n"), 0o600); err != nil {
			s.t.Fatal(err)
		}
		text = strings.ReplaceAll(text, m[1], filepath.Base(m[1]))
	}
	for _, m := range pemRef.FindAllStringSubmatch(text, -1) {
		pem, err := os.ReadFile(filepath.Join("../cmd/stint/internal/config/testdata/good/secrets", pems[m[1]]))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, m[2]), pem, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(s.stint, "stint"), "check", "config.yaml")
	cmd.Dir, cmd.Env = dir, os.Environ()
	for _, m := range envRef.FindAllStringSubmatch(text, -1) {
		cmd.Env = append(cmd.Env, m[1]+"="+secret(m[1]))
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("%s: stint check: %v\n%s\n%s", b, err, out, text)
	}
}

// secret makes up a key, or a password: another one for each name.
func secret(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// complete adds the sections that a configuration must have and text lacks.
func complete(text string) string {
	var has []string
	for _, m := range topLevel.FindAllStringSubmatch(text, -1) {
		has = append(has, m[1])
	}
	charge := "[]"
	if !slices.Contains(has, "policies") {
		charge = "[{policy: address, subject: client-ip}]"
		text += "policies:\n" +
			"  - {id: api, revision: 1, limits: [{token-bucket: {capacity: 100, refill: 10, every: 1s}}]}\n" +
			"  - {id: address, revision: 1, limits: [{sliding-counter: {limit: 600, window: 1m}}]}\n"
	}
	if !slices.Contains(has, "default") {
		text += "default: {charge: " + charge + "}\n"
	}
	if !slices.Contains(has, "identity") && regexp.MustCompile(`(?m)^ +redis:`).MatchString(text) {
		text += "identity: {pseudonym_keys: [{version: 1, file: key1.txt}], active_version: 1}\n"
	}
	return text
}
