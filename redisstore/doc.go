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
// the server is gone, evaluations fail, quickly, and nothing is admitted. One
// standalone server is supported.
package redisstore
