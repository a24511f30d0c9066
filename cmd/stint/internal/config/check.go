package config

import (
	"net"
	"slices"
	"strings"

	"github.com/stintlimit/stint/subject"
)

// check finds what no key can be blamed for alone, and reads secrets.
func (d *decoder) check(c *draft) {
	d.checkListeners(c)
	d.checkStore(c)
	d.checkIdentity(c)
	d.checkPolicies(c)
	d.checkRoutes(c)
}

func (d *decoder) checkListeners(c *draft) {
	_, port, err := net.SplitHostPort(c.Listen)
	if err == nil && c.Listen == c.AdminListen && port != "0" {
		d.problem("admin.listen", "%q is where requests are limited already: the admin listener needs an address of its own", c.AdminListen)
	}
}

func (d *decoder) checkIdentity(c *draft) {
	const path = "identity"
	id := &c.Identity
	d.checkKeys(c)
	for i, p := range id.TrustedProxies {
		if p.IsValid() && p.Bits() == 0 {
			d.problem(index(path+".trusted_proxies", i), "%s trusts everybody: whoever connects could then choose an address", p)
		}
	}
	trusts := len(id.TrustedProxies) > 0 || !d.sound(path+".trusted_proxies")
	switch {
	case !trusts && d.given(path+".client_ip_header"):
		d.problem(path+".client_ip_header", "is never read: trusted_proxies is empty")
	case trusts && id.ClientIPHeader == "":
		id.ClientIPHeader = "X-Forwarded-For"
	}
	if !trusts && d.given(path+".principal_header") {
		d.problem(path+".principal_header", "is believed only from trusted_proxies, of which there are none")
	}
	d.checkHeaders(id)
}

func (d *decoder) checkHeaders(id *Identity) {
	taken := map[string]string{}
	for _, h := range []struct{ key, name string }{
		{"client_ip_header", id.ClientIPHeader},
		{"api_key_header", id.APIKeyHeader},
		{"principal_header", id.PrincipalHeader},
	} {
		if other := taken[h.name]; h.name != "" && other != "" {
			d.problem("identity."+h.key, "%s is the %s already", h.name, other)
		}
		taken[h.name] = h.key
	}
}

func (d *decoder) checkKeys(c *draft) {
	const path = "identity.pseudonym_keys"
	var versions []uint32
	for i, k := range c.keys {
		at := index(path, i)
		if !d.sound(at) {
			continue
		}
		if k.source == (source{}) {
			d.problem(at, "names neither a file nor a variable: `file` or `env`")
		}
		if slices.Contains(versions, k.version) {
			d.problem(at+".version", "%d is taken by another key", k.version)
		}
		versions = append(versions, k.version)
		d.loadKey(c, k, at)
	}
	d.checkActiveVersion(c, versions)
}

func (d *decoder) loadKey(c *draft, k keySource, at string) {
	text, ok := d.secret(k.source, at, "file", "env")
	if !ok {
		return
	}
	key, err := subject.ParseKey(k.version, text)
	if err != nil {
		place := join(at, "file")
		if k.env != "" {
			place = join(at, "env")
		}
		d.problem(place, "holds no key: %s; `stint key new` prints one", strings.TrimPrefix(err.Error(), "subject: "))
		return
	}
	c.Identity.Keys = append(c.Identity.Keys, key)
}

func (d *decoder) checkActiveVersion(c *draft, versions []uint32) {
	const path = "identity.active_version"
	c.Identity.ActiveVersion = c.activeVersion
	switch {
	case !d.sound(path) || !d.sound("identity.pseudonym_keys"):
	case c.activeVersion != 0 && !slices.Contains(versions, c.activeVersion):
		d.problem(path, "no key of pseudonym_keys has the version %d", c.activeVersion)
	case c.activeVersion == 0 && len(versions) > 1:
		d.problem("identity", "active_version is missing: which of the %d keys makes pseudonyms?", len(versions))
	case c.activeVersion == 0 && len(versions) == 1:
		c.Identity.ActiveVersion = versions[0]
	}
}
