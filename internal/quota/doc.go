// Package quota writes what a decision means in HTTP: the RateLimit-Policy
// and RateLimit fields, Retry-After, and problem details for refusals.
//
// The fields follow the syntax of draft-ietf-httpapi-ratelimit-headers-11,
// which is a draft: nothing here claims conformance to a standard. Problem
// details are RFC 9457, Retry-After is RFC 9110 §10.2.3, and 429 is RFC 6585
// §4.
//
// Shadow policies do not show in the fields: a client must not adapt to a
// limit that does not hold.
//
// The package decides nothing and identifies nobody.
package quota
