package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience bounds each question of an inspection: a server that is slow is to
// be seen as slow, and not as gone.
const patience = 5 * time.Second

// inspected is one primary, reached under two accounts, or twice under one.
type inspected struct {
	*inspection
	addr      string
	limiter   *redis.Client // as evaluations connect
	inspector *redis.Client

	hello    map[string]string // what the server says of itself to everybody
	helloErr error
	info     map[string]string // INFO
	infoErr  error
	offset   time.Duration // this host's clock less the server's
	timed    bool          // offset is known
}

// reach connects to a server under both accounts. It does not fail: what is
// wrong shows in what it asks.
func (in *inspection) reach(ctx context.Context, addr string) *inspected {
	s := &inspected{inspection: in, addr: addr}
	s.limiter = in.dial(addr, in.config.Username, in.config.Password)
	s.inspector = in.dial(addr, in.username, in.password)
	s.hello, s.helloErr = hello(ctx, s.limiter)
	text, err := s.inspector.Info(ctx).Result()
	s.info, s.infoErr = fields(text), err
	return s
}

func (s *inspected) close() {
	_ = s.limiter.Close()
	_ = s.inspector.Close()
}

// dial returns a client with one connection.
func (in *inspection) dial(addr, username, password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: username, Password: password,
		Dialer:      func(ctx context.Context, _, addr string) (net.Conn, error) { return in.config.connect(ctx, addr) },
		DialTimeout: patience, DialerRetries: 1, ReadTimeout: patience, WriteTimeout: patience,
		ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 1,
		Protocol: 2, DisableIdentity: true,
	})
}

// hello asks what every account may ask: server, version, mode and role.
func hello(ctx context.Context, c *redis.Client) (map[string]string, error) {
	reply, err := c.Do(ctx, "hello").Slice()
	about := map[string]string{}
	for i := 0; i+1 < len(reply); i += 2 {
		about[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
	}
	return about, err
}

// fields reads the "name:value" lines of INFO and of CLUSTER INFO.
func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); found {
			all[name] = value
		}
	}
	return all
}

// report adds a finding about this server.
func (s *inspected) report(check string, status Status, detail, advice string) {
	s.inspection.report(Finding{Check: check, Node: s.addr, Status: status, Detail: detail, Advice: advice})
}

// unseen reports that a check could not be made. That is never a pass.
func (s *inspected) unseen(check string, err error) {
	advice := "run it again when the server answers"
	switch {
	case refused(err):
		advice = "use the inspection account: --username and --password-file"
	case strings.HasPrefix(err.Error(), "WRONGPASS"), strings.HasPrefix(err.Error(), "NOAUTH"):
		advice = "correct the username and the password"
	}
	s.report(check, StatusWarn, "could not look: "+err.Error(), advice)
}

// refused reports whether an account may not do what it asked for.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "NOPERM")
}

// inspect makes every check of one server, and reports whether evaluations can
// reach it.
func (s *inspected) inspect(ctx context.Context) (usable bool) {
	if usable = s.reachable(); !usable && s.infoErr != nil {
		return false
	}
	s.version()
	s.arranged()
	s.primary()
	s.transport()
	s.account(ctx)
	s.eviction()
	s.memory()
	s.persistence()
	s.replicas()
	s.minimumReplicas()
	s.scripts(ctx)
	s.clock(ctx)
	return usable
}

func (s *inspected) reachable() bool {
	const check = "reachable"
	if s.helloErr == nil {
		s.report(check, StatusPass, "the server answers, and knows the account", "")
		return true
	}
	text := s.helloErr.Error()
	advice := "start it, or correct its address; is a firewall between?"
	switch {
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "NOAUTH"):
		advice = "correct username and password, or give the server the account that `stint acl` prints"
	case strings.Contains(text, "max number of clients"):
		advice = fmt.Sprintf("raise maxclients: each stint keeps up to %d connections", s.config.Senders+1)
	case strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		advice = "compare the server's certificate with the configured authority and name"
	}
	s.report(check, StatusFail, text, advice)
	return false
}

func (s *inspected) version() {
	const check = "version"
	name, version := "Redis", s.hello["version"]
	if version == "" {
		version = s.info["redis_version"]
	}
	if v := s.info["valkey_version"]; v != "" {
		name, version = "Valkey", v
	} else if s.hello["server"] == "valkey" {
		name = "Valkey"
	}
	switch {
	case version == "":
		s.report(check, StatusWarn, "the server does not say its version", "")
	case tooOld(version):
		s.report(check, StatusFail, name+" "+version+": scripts need 7.0 or newer", "upgrade the server")
	default:
		s.report(check, StatusPass, name+" "+version, "")
	}
}

// arranged compares what the configuration and the server say of a Cluster.
func (s *inspected) arranged() {
	const check = "topology"
	switch {
	case s.config.Cluster && !s.clustered():
		s.report(check, StatusFail, "the server is no node of a Cluster, as configured", "remove `cluster: true`, or correct the address")
	case !s.config.Cluster && s.clustered():
		s.report(check, StatusFail, "the server is a node of a Cluster, and not configured as one", "configure `cluster: true`")
	case s.config.Cluster:
		s.report(check, StatusPass, "a node of a Cluster, as configured", "")
	case s.config.Sentinel != nil:
		s.report(check, StatusPass, "the primary that the Sentinels name, as configured", "")
	default:
		s.report(check, StatusPass, "a server of its own, as configured", "")
	}
}

func (s *inspected) primary() {
	const check = "primary"
	switch role := s.hello["role"]; role {
	case "master":
		s.report(check, StatusPass, "the server is a primary", "")
	case "":
		s.unseen(check, s.helloErr)
	default:
		s.report(check, StatusFail, "the server is a "+role+": it refuses every write", "configure the primary's address, or Sentinel")
	}
}

// transport says whether passwords and pseudonyms can be read on the way.
func (s *inspected) transport() {
	const check = "tls"
	switch {
	case s.config.TLS != nil:
		s.report(check, StatusPass, "connections are under TLS, and the server's certificate is verified", "")
	case isLoopback(s.addr):
		s.report(check, StatusInfo, "not used; the server is on this machine", "")
	default:
		s.report(check, StatusWarn, "not used: the password and what is counted can be read on the way", "use TLS, or a network that nobody else reads")
	}
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
