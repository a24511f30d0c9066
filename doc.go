// Package stint answers one question: may this caller spend this much now?
//
// It is the vocabulary of a rate limiter and nothing else: a [Policy] of one
// or several limits, a [Request] to spend, a [Decision], an [Error] that says
// what is known about spending when there is no decision, and the [Store]
// port behind which a budget lives. A [Limiter] binds policies to a store.
//
// Three rules hold everywhere:
//
//   - an error never allows: a caller that could not be decided on is refused;
//   - a denial spends nothing, and leaves no trace in the store;
//   - "unknown" is an answer: see [Indeterminate].
//
// The package has no clock of its own beyond the default of [New], opens no
// connection, starts no goroutine and depends on the standard library only.
// Budgets live in package memstore (one process) or package redisstore
// (shared); package httplimit limits a net/http handler.
package stint
