package subject

import (
	"errors"
	"strings"
)

// A Normaliser maps the spellings of one identity to its canonical form. It
// must be deterministic and idempotent, and its errors must not quote the
// identity. Where two spellings may be two clients, use none.
type Normaliser func(identity string) (string, error)

// ErrNotASCII is returned by [LowerASCII] for an identity with other bytes.
var ErrNotASCII = errors.New("subject: the identity is not ASCII")

// LowerASCII folds A–Z to a–z and refuses identities outside ASCII, whose case
// depends on the language.
func LowerASCII(identity string) (string, error) {
	for i := range len(identity) {
		if identity[i] >= 0x80 {
			return "", ErrNotASCII
		}
	}
	return strings.ToLower(identity), nil
}

// TrimSpace removes ASCII space and tab around the identity.
func TrimSpace(identity string) (string, error) { return strings.Trim(identity, " \t"), nil }

// Chain applies normalisers in order.
func Chain(normalisers ...Normaliser) Normaliser {
	return func(identity string) (string, error) {
		for _, n := range normalisers {
			var err error
			if identity, err = n(identity); err != nil {
				return "", err
			}
		}
		return identity, nil
	}
}
