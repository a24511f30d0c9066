// Package subject turns who somebody is into a [stint.Pseudonym], the only
// form in which an identity leaves the process that saw it.
//
// A pseudonym is HMAC-SHA-256 under a secret key over the kind of identity,
// the identity and the operation, each framed by its length in bytes, cut to
// 128 bits. Whoever reads a store, a log or a metric learns nothing about the
// identity without the key; whoever holds the key can recompute it.
//
// The package does not find out who is calling: package internal/clientip and
// the transports do. It does not read files or the environment either.
package subject

import "errors"

// Kind says what an identity is. It is part of the pseudonym: the principal
// "192.0.2.1" is not the address 192.0.2.1.
type Kind string

// The kinds that the transports of this module use. Others may be invented;
// their text must never change, since it is part of every pseudonym.
const (
	ClientIP  Kind = "client-ip" // a network address, grouped by prefix
	APIKey    Kind = "api-key"   // a key as the client sent it, not verified here
	Principal Kind = "principal" // a name that somebody trusted has authenticated
	Everyone  Kind = "everyone"  // one budget for all; see EveryoneIdentity
)

// EveryoneIdentity is the only identity of kind [Everyone].
const EveryoneIdentity = "*"

// ErrEmptyIdentity is returned for an identity of no bytes: it would put
// everybody who could not be identified into one budget.
var ErrEmptyIdentity = errors.New("subject: the identity is empty")
