package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// judge says whether the limiter's account may make a call.
type judge func(context.Context, call) (bool, error)

// account checks that the limiter's account may do what evaluations do, and
// nothing else that matters.
func (s *inspected) account(ctx context.Context) {
	may, excess := judge(s.dryRun), excessAsked
	if _, err := may(ctx, call{"ping"}); refused(err) {
		may, excess = s.try, excessTried
	}
	s.accountSufficient(ctx, may)
	s.accountNarrow(ctx, may, excess)
}

// dryRun asks the server, which makes no note of it.
func (s *inspected) dryRun(ctx context.Context, c call) (bool, error) {
	user := s.config.Username
	if user == "" {
		user = "default"
	}
	reply, err := s.inspector.Do(ctx, append(call{"acl", "dryrun", user}, c...)...).Text()
	if err != nil && strings.Contains(err.Error(), "Command") && strings.Contains(err.Error(), "not found") {
		return false, nil // nobody may: the server has renamed it, or never had it
	}
	return reply == "OK", err
}

// try makes the call, which must be one that changes nothing. Whatever is said
// to its arguments, the account was asked first.
func (s *inspected) try(ctx context.Context, c call) (bool, error) {
	err := s.limiter.Do(ctx, c...).Err()
	var reply redis.Error
	switch {
	case refused(err):
		return false, nil
	case err == nil, errors.As(err, &reply):
		return true, nil
	}
	return false, err
}

// key is one that evaluations could use, and never do.
func (s *inspected) key() string { return s.config.Prefix + ":doctor" }

func (s *inspected) accountSufficient(ctx context.Context, may judge) {
	const check = "account-sufficient"
	var missing []string
	needed := limiterGrants(s.key())
	if s.clustered() {
		needed = append(needed, clusterGrants...)
	}
	for _, g := range needed {
		ok, err := may(ctx, g.call)
		if err != nil {
			s.unseen(check, err)
			return
		}
		if !ok {
			missing = append(missing, g.name())
		}
	}
	if len(missing) > 0 {
		s.report(check, StatusFail, "the account may not, on keys of the prefix: "+strings.Join(missing, ", "),
			"give it the rules that `stint acl` prints")
		return
	}
	s.report(check, StatusPass, "the account may do all that evaluations need", "")
}

// excessTried can be called without harm by an account that may.
var excessTried = []grant{
	{"eval", call{"eval", "(", 0}},
	{"config|get", call{"config", "get", "maxmemory-policy"}},
	{"dbsize", call{"dbsize"}},
}

// excessAsked is only ever asked about.
var excessAsked = append([]grant{
	{"keys", call{"keys", "*"}},
	{"flushall", call{"flushall"}},
	{"script|flush", call{"script", "flush"}},
	{"function|load", call{"function", "load", "("}},
	{"config|set", call{"config", "set", "maxmemory-policy", "noeviction"}},
	{"acl|setuser", call{"acl", "setuser", "somebody"}},
	{"replicaof", call{"replicaof", "no", "one"}},
	{"shutdown", call{"shutdown"}},
}, excessTried...)

func (s *inspected) accountNarrow(ctx context.Context, may judge, excess []grant) {
	const check = "account-narrow"
	var permitted, denied []string
	for _, g := range excess {
		ok, err := may(ctx, g.call)
		switch {
		case err != nil:
			s.unseen(check, err)
			return
		case ok:
			permitted = append(permitted, g.name())
		default:
			denied = append(denied, g.name())
		}
	}
	for _, other := range []string{"not-" + s.key(), s.config.Prefix + "2:doctor"} {
		ok, err := s.reaches(ctx, may, other)
		switch {
		case err != nil:
			s.unseen(check, err)
			return
		case ok:
			permitted = append(permitted, "keys such as "+other)
		default:
			denied = append(denied, "keys such as "+other)
		}
	}
	if len(permitted) > 0 {
		s.report(check, StatusWarn, "the account may more than evaluations need: "+strings.Join(permitted, ", "),
			"give stint an account of its own, with the rules that `stint acl` prints")
		return
	}
	s.report(check, StatusPass, "refused to the account: "+strings.Join(denied, ", "), "")
}

// reaches reports whether any command reaches a key of somebody else.
func (s *inspected) reaches(ctx context.Context, may judge, other string) (bool, error) {
	for _, g := range limiterGrants(other) {
		if !slices.Contains(g.call, any(other)) {
			continue
		}
		if ok, err := may(ctx, g.call); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
