package config

import (
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
)

// redisSources are the secrets and files that store.redis names.
type redisSources struct {
	url, password, sentinelPassword source
	tls                             *tlsFiles // nil: there is no tls
}

type tlsFiles struct{ ca, cert, key, serverName string }

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

func redis(r *Redis, from *redisSources) shape {
	const inline = "a password never stands in the configuration: name a file with password_file, or a variable with password_env"
	return mapping([]setting{
		may("addresses", "`sentinel`, `url_file` or `url_env` is given", list(&r.Addresses, "list of addresses", server)),
		may("url_file", "see `addresses`", fileName(&from.url.file)),
		may("url_env", "see `addresses`", variable(&from.url.env)),
		never("url", "a URL may hold a password, which never stands in the configuration: name a file with url_file, or a variable with url_env;"+
			" one without a password may stand in addresses"),
		may("sentinel", "see `addresses`", optional(&r.Sentinel, func(s *Sentinel) shape {
			return mapping([]setting{
				must("master", nonEmpty(&s.Master, "text", "not empty")),
				must("addresses", list(&s.Addresses, "list of addresses", func(a *string) shape { return address(a, false) })),
				may("username", "the Sentinels' default user", nonEmpty(&s.Username, "text", "not empty")),
				may("password_file", "no password", fileName(&from.sentinelPassword.file)),
				may("password_env", "no password", variable(&from.sentinelPassword.env)),
				never("password", inline),
			})
		})),
		or("cluster", "false", truth(&r.Cluster)),
		may("username", "the server's default user", nonEmpty(&r.Username, "text", "not empty")),
		may("password_file", "no password", fileName(&from.password.file)),
		may("password_env", "no password", variable(&from.password.env)),
		never("password", inline),
		may("tls", "no TLS, unless a URL begins with `rediss://`", optional(&from.tls, tlsSettings)),
		or("prefix", "stint", text("text", "1 to 32 letters, digits, '.', '_', '-'", &r.Prefix, func(s string) string {
			if prefixPattern.MatchString(s) {
				return ""
			}
			return "is not a prefix: 1 to 32 letters, digits, '.', '_' or '-', first a letter or a digit"
		})),
		or("command_timeout", "250ms", duration(&r.CommandTimeout, time.Millisecond, time.Minute)),
		or("clock", "server", choice(&r.CallerClock, []string{"server", "caller"}, false, true)),
		or("maximum_clock_skew", "2s", duration(&r.MaximumClockSkew, time.Millisecond, time.Hour)),
		or("breaker", "{}", orOff(&r.Breaker.Off, mapping([]setting{
			or("failures", "5", integer(&r.Breaker.Failures, 1, 1_000_000)),
			or("cooldown", "500ms", duration(&r.Breaker.Cooldown, 10*time.Millisecond, time.Minute)),
		}))),
	})
}

func tlsSettings(t *tlsFiles) shape {
	const inline = "keys never stand in the configuration: name files with cert_file and key_file"
	const unverified = "certificates are always verified: name who issued the server's with ca_file, and the name that it carries with server_name"
	return mapping([]setting{
		may("ca_file", "the system's authorities", fileName(&t.ca)),
		may("cert_file", "no certificate is shown", fileName(&t.cert)),
		may("key_file", "no certificate is shown", fileName(&t.key)),
		may("server_name", "the host that is dialled", text("host name", "or an IP address", &t.serverName, func(s string) string {
			if isHost(s) {
				return ""
			}
			return "is neither a host name nor an IP address"
		})),
		never("key", inline), never("cert", inline), never("ca", inline),
		never("insecure_skip_verify", unverified), never("insecure", unverified), never("verify", unverified),
	})
}

// server reads host:port, or a URL of one without an account.
func server(into *string) shape {
	plain := address(into, false)
	return shape{kind: plain.kind, bounds: "host:port, port 1 to 65535; or redis:// or rediss://, without a user", read: func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.text(n, path)
		switch {
		case !ok:
		case !mayHoldSecret(s):
			plain.read(d, n, path)
		default:
			*into = s
			if wrong := checkURL(s, false); wrong != "" {
				d.problemNode(n, path, "%s", wrong)
			}
		}
	}}
}
