// Package redisstore is a stint.Store on Redis or Valkey, 7.0 and newer: the
// one to use when several processes share a budget.
//
// Every decision is one script on the server, so it is atomic; nothing is ever
// rolled back, so everything is validated before the first write. A decision
// that reaches the server after its deadline refuses itself. A reply that was
// lost is asked for once more, inside the deadline, and what was spent is not
// spent again; if that fails too, the answer is stint.Indeterminate.
//
// It is the only package that knows a client library. It has no fallback: when
// the server is gone, evaluations fail, quickly, and nothing is admitted. It
// never reads from a replica.
//
// The server is one at an address, the primary that Sentinels name, or a
// Cluster, where each group goes to the primary of its slot and a group over
// several slots is not atomic: it never admits too much, a racing caller may be
// refused until what was taken has been given back, a crash in between leaves
// at most the group's cost spent until its windows pass, and RetryAfter is an
// upper bound. Config.Addresses, Config.Sentinel and Config.Cluster say which.
package redisstore
