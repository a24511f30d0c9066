// Package edge is the bridge from an HTTP request to a decision: who is
// calling, which charges its route makes, and how long the answer may take.
//
// Nothing that a client sends chooses the evaluation id, the cost or the
// policy. Identities become pseudonyms here and do not cross the limiter.
// Whoever cannot be identified is refused here, before any store is asked.
//
// The package writes no response: the transports do, with package quota.
package edge
