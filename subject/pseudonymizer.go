package subject

import (
	"errors"
	"fmt"
	"maps"

	"github.com/stintlimit/stint"
)

// Pseudonymizer makes pseudonyms under the active key of a ring. It is safe
// for concurrent use.
type Pseudonymizer struct {
	ring        *KeyRing
	normalisers map[Kind]Normaliser
}

// NewPseudonymizer returns a pseudonymizer over ring. Identities of a kind
// without a normaliser are taken byte for byte.
func NewPseudonymizer(ring *KeyRing, normalisers map[Kind]Normaliser) (*Pseudonymizer, error) {
	if ring == nil || ring.active == nil {
		return nil, errors.New("subject: a pseudonymizer needs a key ring; EphemeralKeyRing makes one for this process")
	}
	for kind, n := range normalisers {
		if n == nil {
			return nil, fmt.Errorf("subject: the normaliser of kind %q is nil", kind)
		}
	}
	return &Pseudonymizer{ring: ring, normalisers: maps.Clone(normalisers)}, nil
}

// Pseudonym returns the pseudonym of an identity. The operation is empty for a
// budget that every operation shares, and names the operation for a budget of
// its own. The error is [ErrEmptyIdentity], or what the normaliser returned.
func (p *Pseudonymizer) Pseudonym(kind Kind, identity, operation string) (stint.Pseudonym, error) {
	if n := p.normalisers[kind]; n != nil {
		canonical, err := n(identity)
		if err != nil {
			return stint.Pseudonym{}, err
		}
		identity = canonical
	}
	if identity == "" {
		return stint.Pseudonym{}, ErrEmptyIdentity
	}
	return p.ring.active.pseudonym(kind, identity, operation), nil
}
