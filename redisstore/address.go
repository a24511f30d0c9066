package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// complain names a field and what is wrong with it.
type complain func(field, format string, args ...any)

// locateServers validates where the servers are, and takes accounts and TLS
// out of URLs.
func (c *Config) locateServers(bad complain) {
	if c.Sentinel != nil {
		if len(c.Addresses) > 0 {
			bad("Addresses", "are found by the Sentinels: give one or the other")
		}
		if c.Cluster {
			bad("Cluster", "and Sentinel exclude each other")
		}
		c.Sentinel.validate(bad)
		return
	}
	switch {
	case len(c.Addresses) == 0:
		bad("Addresses", "are missing: the server, as host:port or URL")
	case len(c.Addresses) > 1 && !c.Cluster:
		bad("Addresses", "are %d: give one server, or say that they are a Cluster", len(c.Addresses))
	}
	addresses := make([]string, len(c.Addresses))
	for i, a := range c.Addresses {
		field := fmt.Sprintf("Addresses[%d]", i)
		if strings.Contains(a, "://") {
			var err error
			if a, err = c.takeURL(a); err != nil {
				bad(field, "%v", err)
				continue
			}
		}
		addresses[i] = a
		if !isHostPort(a) {
			bad(field, "%s", notHostPort(a))
		}
	}
	c.Addresses = addresses
}

// takeURL takes what redis://user:password@host:port/0 says and returns
// host:port. No error repeats the URL: it may hold a password.
func (c *Config) takeURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("the URL cannot be read: is a character of the password not percent-encoded?")
	}
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return "", errors.New("a URL begins with redis:// or, with TLS, rediss://")
	case u.Path != "" && u.Path != "/" && u.Path != "/0":
		return "", errors.New("the URL names a database: only 0 is supported")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the URL has a query or a fragment, which mean nothing here")
	case u.Hostname() == "":
		return "", errors.New("the URL names no host")
	}
	password, given := u.User.Password()
	if name := u.User.Username(); name != "" || given {
		if (c.Username != "" || c.Password != "") && (c.Username != name || c.Password != password) {
			return "", errors.New("the account is in the URL and beside it: give it once")
		}
		c.Username, c.Password = name, password
	}
	if u.Scheme == "rediss" && c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

func (s *Sentinel) validate(bad complain) {
	if s.Master == "" {
		bad("Sentinel.Master", "is empty: the name that the Sentinels watch the primary by")
	}
	if len(s.Addresses) == 0 {
		bad("Sentinel.Addresses", "name no Sentinel: at least one host:port")
	}
	for i, a := range s.Addresses {
		if !isHostPort(a) {
			bad(fmt.Sprintf("Sentinel.Addresses[%d]", i), "%s", notHostPort(a))
		}
	}
	if s.Username != "" && s.Password == "" {
		bad("Sentinel.Password", "is required with a Username")
	}
}

// notHostPort repeats an address only if no account can be in it.
func notHostPort(a string) string {
	if strings.ContainsAny(a, "@/") {
		return "is not host:port"
	}
	return fmt.Sprintf("%q is not host:port", a)
}

func isHostPort(a string) bool {
	host, port, err := net.SplitHostPort(a)
	return err == nil && host != "" && port != "" && !strings.ContainsAny(a, "@/")
}
