// Package chaos judges a rate limiter by what its callers saw while its
// servers were being broken.
//
// A run leaves a [History]: what every process asked for and was told, what
// data was lost and when, and what the servers held at the end. [Check] proves
// from it what docs/failure-semantics promises, or says what was broken. The
// rest is what a run needs on the callers' side: policies, a program of calls,
// a clock that steps, a schedule of faults. Everything random follows a seed.
//
// It starts no process and knows no server: package redisstore's suite, under
// the build tag chaos, does that. It is for this project's tests only.
package chaos
