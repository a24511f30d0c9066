// Package storetest holds every implementation of [stint.Store] to one
// contract.
//
// [Run] is the conformance suite: what the port promises, one promise a
// subtest, and traces that a person can read, replayed on the store. [Agree]
// drives two stores through one random program and compares every field of
// every answer. [Faulty] is a store that answers with an error, for the tests
// of what stands before a store.
//
// The suite sees a store through its port only. It does not test how a store
// fails, what it keeps on a disk or a wire, or how fast it is.
//
// The stores under test take Group.Now as the time: a store that has a better
// clock must be told to trust its caller's, without a bound on their
// difference.
package storetest
