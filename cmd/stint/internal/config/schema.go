package config

import (
	"log/slog"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The schema is the file's form: every key, what it accepts and what it means
// when it is absent. docs/configuration.md is tested against it. What several
// keys must agree on is in the check files.

func must(key string, s shape) setting { return setting{key: key, shape: s} }
func or(key, fallback string, s shape) setting {
	return setting{key: key, shape: s, fallback: fallback}
}
func may(key, note string, s shape) setting { return setting{key: key, shape: s, note: note} }
func never(key, why string) setting         { return setting{key: key, refuse: why} }

// draft is a Config while it is read, with what is not yet in its final form.
type draft struct {
	Config
	redis         redisSources
	keys          []keySource
	activeVersion uint32
}

type keySource struct {
	source
	version uint32
}

func root(c *draft) shape {
	return mapping([]setting{
		or("listen", "127.0.0.1:8080", address(&c.Listen, true)),
		or("admin", "{}", mapping([]setting{
			or("listen", "127.0.0.1:8081", address(&c.AdminListen, true)),
		})),
		may("upstream", "a built-in page answers", httpURL(&c.Upstream)),
		or("deadline", "750ms", duration(&c.Deadline, time.Millisecond, time.Minute)),
		or("drain_timeout", "10s", duration(&c.DrainTimeout, time.Millisecond, time.Hour)),
		or("log", "{}", mapping([]setting{
			or("level", "info", choice(&c.Log.Level, []string{"debug", "info", "warn", "error"},
				slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError)),
			or("format", "text", choice(&c.Log.JSON, []string{"text", "json"}, false, true)),
		})),
		or("failure", "{}", mapping([]setting{
			or("policy", "fail-closed", failurePolicy()),
			or("retry_after", "1s", duration(&c.RetryAfter, time.Second, time.Hour)),
		})),
		or("store", "{}", store(c)),
		or("identity", "{}", identity(c)),
		must("policies", list(&c.Policies, "list of mappings", policy)),
		or("exempt", "{}", mapping([]setting{
			or("networks", "[]", list(&c.Exempt.Networks, "list of networks", network)),
			or("paths", "[]", list(&c.Exempt.Paths, "list of patterns", pattern)),
		})),
		or("routes", "[]", list(&c.Routes, "list of mappings", route)),
		must("default", mapping([]setting{
			must("charge", list(&c.Default, "list of mappings", charge)),
		})),
	})
}

func failurePolicy() shape {
	return shape{kind: "word", bounds: "fail-closed", read: func(d *decoder, n *yaml.Node, path string) {
		switch word, ok := d.text(n, path); {
		case !ok || word == "fail-closed":
		case word == "fail-open":
			d.problemNode(n, path, "fail-open does not exist: whoever can disturb the store could then spend without limit;"+
				" to watch a policy that refuses nobody, not even in an outage, give it `mode: shadow`")
		default:
			d.problemNode(n, path, "%q is no failure policy; %s", clip(word), suggest(word, []string{"fail-closed"}, "there is only"))
		}
	}}
}

func store(c *draft) shape {
	return mapping([]setting{
		may("memory", "`{}` unless `redis` is given", optional(&c.Store.Memory, memory)),
		may("redis", "budgets are kept in memory", optional(&c.Store.Redis, func(r *Redis) shape { return redis(r, &c.redis) })),
	})
}

func memory(m *Memory) shape {
	return mapping([]setting{
		or("max_subjects", "1000000", integer(&m.MaxSubjects, 1, 1_000_000_000)),
	})
}

func identity(c *draft) shape {
	const inline = "key material never stands in the configuration: write the key to a file and name it with `file`, or name a variable with `env`"
	return mapping([]setting{
		or("pseudonym_keys", "[]", list(&c.keys, "list of mappings", func(k *keySource) shape {
			return mapping([]setting{
				must("version", integer(&k.version, 1, math.MaxUint32)),
				may("file", "`env` is given", fileName(&k.file)),
				may("env", "`file` is given", variable(&k.env)),
				never("key", inline), never("secret", inline), never("value", inline), never("base64", inline),
			})
		})),
		may("active_version", "the version of the only key", integer(&c.activeVersion, 1, math.MaxUint32)),
		or("trusted_proxies", "[]", list(&c.Identity.TrustedProxies, "list of networks", network)),
		may("client_ip_header", "`X-Forwarded-For` if there are `trusted_proxies`", header(&c.Identity.ClientIPHeader)),
		or("api_key_header", "X-API-Key", header(&c.Identity.APIKeyHeader)),
		may("principal_header", "there are no principals", header(&c.Identity.PrincipalHeader)),
	})
}

// fileName and variable never repeat in a message what they read.
func fileName(into *string) shape { return nonEmpty(into, "file name", "relative to this file") }
func variable(into *string) shape { return nonEmpty(into, "variable name", "letters, digits, '_'") }

func nonEmpty(into *string, kind, bounds string) shape {
	return text(kind, bounds, into, func(s string) string {
		if strings.TrimSpace(s) == "" {
			return "is empty"
		}
		return ""
	})
}
