package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The server versions that ACL writes rules for. An unknown name in a rule makes
// a server refuse the whole file, so each family has a file of its own.
const (
	ACLFor70 = "7.0" // Redis 7.0 and 7.2
	ACLFor8  = "8"   // Redis 7.4 and newer, Valkey of any version
)

// The accounts of an ACL file.
const (
	LimiterAccount    = "stint"         // what Config.Username is
	InspectionAccount = "stint-inspect" // what WithInspector takes
)

// ErrACLVersion says that there are no rules for such a server.
var ErrACLVersion = errors.New(`no rules are known for that version: it is "` + ACLFor70 + `" or "` + ACLFor8 + `"`)

// ACL returns the text of an ACL file for servers of a version, ACLFor70 or
// ACLFor8, and keys that begin with prefix; an empty prefix is DefaultPrefix.
//
// The default user is off, one account limits and one inspects. Where their
// passwords belong stand words that no server accepts: an operator replaces
// each by the SHA-256 of a password, in hexadecimal. The error is
// ErrACLVersion, or names what is wrong with the prefix.
func ACL(version, prefix string) (string, error) {
	if !slices.Contains([]string{ACLFor70, ACLFor8}, version) {
		return "", fmt.Errorf("%q: %w", version, ErrACLVersion)
	}
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if !prefixPattern.MatchString(prefix) {
		return "", fmt.Errorf("%q is not a prefix: a letter or digit, then at most 31 letters, digits, '.', '_' or '-'", prefix)
	}
	return "user default off\n" +
		"user " + LimiterAccount + " on #SHA256-OF-THE-LIMITER-PASSWORD " + limiterRules(prefix) + "\n" +
		"user " + InspectionAccount + " on #SHA256-OF-THE-INSPECTION-PASSWORD " + inspectionRules() + "\n", nil
}

// call is a command and its arguments.
type call []any

// grant is a rule of an account, and a call that needs it. The call changes
// nothing, permitted or not: a server asks the account's rules first, and then
// refuses for its arguments what would write.
type grant struct {
	rule string
	call call
}

// name is the command, with its subcommand if the rule names one: script|load.
func (g grant) name() string { return strings.TrimPrefix(g.rule, "+") }

// noScript is a digest that no script has.
var noScript = strings.Repeat("0", 40)

// limiterGrants is everything that evaluations send, and Ping, and what the
// scripts call: the server checks that against the account too.
func limiterGrants(key string) []grant {
	return []grant{
		{"+evalsha", call{"evalsha", noScript, 1, key}},
		{"+script|load", call{"script", "load", "("}},
		{"+mget", call{"mget", key}},
		{"+set", call{"set", key, "", "nx", "xx"}},
		{"+setrange", call{"setrange", key, -1, ""}},
		{"+pttl", call{"pttl", key}},
		{"+time", call{"time"}},
		{"+ping", call{"ping"}},
	}
}

// clusterGrants is what evaluations send besides to the nodes of a Cluster.
var clusterGrants = []grant{
	{"+cluster|slots", call{"cluster", "slots"}},
	{"+asking", call{"asking"}},
}

// inspectionGrants is everything that Inspect asks under an account of its
// own. INFO tells what CONFIG GET would, but for passwords.
var inspectionGrants = []grant{
	{"+info", call{"info"}},
	{"+acl|dryrun", call{"acl", "dryrun", LimiterAccount, "ping"}},
	{"+script|exists", call{"script", "exists", noScript}},
	{"+cluster|info", call{"cluster", "info"}},
	{"+cluster|slots", call{"cluster", "slots"}},
}

func limiterRules(prefix string) string {
	return "resetchannels ~" + prefix + ":* -@all" + rules(limiterGrants("")) + rules(clusterGrants)
}

func inspectionRules() string { return "resetkeys resetchannels -@all" + rules(inspectionGrants) }

func rules(grants []grant) string {
	text := ""
	for _, g := range grants {
		text += " " + g.rule
	}
	return text
}
