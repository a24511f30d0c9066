package config

import (
	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

func (d *decoder) checkStore(c *draft) {
	r := c.Store.Redis
	if r == nil {
		if c.Store.Memory == nil && d.sound("store") {
			c.Store.Memory = &Memory{}
			memory(c.Store.Memory).read(d, parseFallback("{}"), "store.memory")
		}
		return
	}
	if c.Store.Memory != nil {
		d.problem("store.redis", "stands beside memory: a server has one store, give one of the two")
	}
	d.checkServers(r)
	d.checkAccounts(r, &c.redis)
	if c.redis.tls != nil {
		r.TLS = d.readTLS(c.redis.tls, "store.redis.tls")
	}
	if len(c.keys) == 0 && d.sound("identity.pseudonym_keys") {
		d.problem("identity", "pseudonym_keys is missing: with Redis the key must outlive the process;"+
			" `stint key new` prints one, write it to a file and name that file")
	}
}

// checkServers checks that one key, and only one, says where the servers are.
func (d *decoder) checkServers(r *Redis) {
	const path = "store.redis"
	var where []string
	for _, key := range []string{"addresses", "url_file", "url_env", "sentinel"} {
		if d.given(join(path, key)) {
			where = append(where, key)
		}
	}
	if len(where) == 0 {
		d.problem(path, "names no server: addresses, sentinel, url_file or url_env is missing")
	}
	for i, key := range where {
		if i > 0 && (where[0] != "url_file" || key != "url_env") { // that pair is a secret's matter
			d.problem(join(path, key), "stands beside %s: only one of them says where the server is", where[0])
		}
	}
	if d.sound(path + ".addresses") {
		switch {
		case d.given(path+".addresses") && len(r.Addresses) == 0:
			d.problem(path+".addresses", "is empty: at least one host:port")
		case len(r.Addresses) > 1 && !r.Cluster && d.sound(path+".cluster"):
			d.problem(index(path+".addresses", 1), "a second address: give one server, or nodes of a Cluster with `cluster: true`")
		}
	}
	if s := r.Sentinel; s != nil {
		if r.Cluster {
			d.problem(path+".cluster", "stands beside sentinel: a Cluster is found by addresses of its own nodes")
		}
		if len(s.Addresses) == 0 && d.sound(path+".sentinel") {
			d.problem(path+".sentinel.addresses", "is empty: at least one host:port of a Sentinel")
		}
	}
}

// checkAccounts reads passwords, and the URL that may hold one.
func (d *decoder) checkAccounts(r *Redis, from *redisSources) {
	const path = "store.redis"
	if text, ok := d.secret(from.password, path, "password_file", "password_env"); ok {
		r.Password = NewSecret(text)
	}
	d.checkPassword(r.Username, from.password, path)
	if r.Sentinel != nil {
		if text, ok := d.secret(from.sentinelPassword, path+".sentinel", "password_file", "password_env"); ok {
			r.Sentinel.Password = NewSecret(text)
		}
		d.checkPassword(r.Sentinel.Username, from.sentinelPassword, path+".sentinel")
	}
	text, ok := d.secret(from.url, path, "url_file", "url_env")
	if !ok {
		return
	}
	r.URL = NewSecret(text)
	place := path + ".url_file"
	if from.url.env != "" {
		place = path + ".url_env"
	}
	if wrong := checkURL(text, true); wrong != "" {
		d.problem(place, "holds no URL of a server: %s", wrong)
		return
	}
	if hasAccount(text) && (r.Username != "" || from.password != (source{})) {
		d.problem(place, "holds an account already: username and password stand in the URL or beside it")
	}
}

func (d *decoder) checkPassword(username string, password source, path string) {
	for _, key := range []string{"username", "password", "password_file", "password_env"} {
		if !d.sound(join(path, key)) {
			return
		}
	}
	if username != "" && password == (source{}) {
		d.problem(path+".username", "has no password beside it: password_file or password_env")
	}
}

// checkSlots finds charges that a Cluster could not undo. Where a route charges
// several subjects, these lie in several slots, which no script decides as
// one: they are charged one after another, and given back if a later one is
// refused. That needs records of what was charged.
func (d *decoder) checkSlots(charges []Charge, at string, policies map[string]stint.Policy, c *draft) {
	if c.Store.Redis == nil || !c.Store.Redis.Cluster {
		return
	}
	type counted struct {
		subject subject.Kind
		route   bool
		prefix  int
	}
	subjects := map[counted]bool{}
	for _, ch := range charges {
		subjects[counted{ch.Subject, ch.PerRoute, ch.IPv6Prefix}] = true
	}
	if len(subjects) < 2 {
		return
	}
	for i, ch := range charges {
		if policies[ch.Policy].Dedup.Off {
			d.problem(index(at+".charge", i)+".policy", "%q has `evaluation_dedup: off`, and this route charges several subjects: in a Cluster they lie in several slots,"+
				" and what was charged in one can be given back when another refuses only if it was recorded", clip(ch.Policy))
		}
	}
}
