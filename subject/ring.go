package subject

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// KeyRing holds the loaded versions of the key, one of them active. It is
// immutable and safe for concurrent use.
//
// Pseudonyms carry the version they were made with. Activating another version
// gives every subject new pseudonyms, and so a fresh budget.
type KeyRing struct {
	active *hasher
	all    []*hasher
}

// NewKeyRing returns a ring of keys with distinct versions, of which active is
// used.
func NewKeyRing(active uint32, keys ...Key) (*KeyRing, error) {
	r := &KeyRing{}
	var problems []error
	for _, k := range keys {
		switch {
		case k.secret == nil:
			problems = append(problems, errors.New("subject: a zero Key has no secret: use ParseKey"))
		case r.find(k.version) != nil:
			problems = append(problems, fmt.Errorf("subject: key version %d is given twice", k.version))
		default:
			r.all = append(r.all, newHasher(k))
		}
	}
	if r.active = r.find(active); r.active == nil && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("subject: no key has the active version %d", active))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return r, nil
}

// EphemeralKeyRing returns a ring of one random key that lives as long as the
// process. Its pseudonyms mean nothing to another process or after a restart:
// use it with budgets that are kept in memory, never with a shared store.
func EphemeralKeyRing() *KeyRing {
	h := newHasher(newKey(1, randomSecret()))
	return &KeyRing{active: h, all: []*hasher{h}}
}

// Activate returns a ring of the same keys in which version is active: to
// look up a counter that was made under an earlier key.
func (r *KeyRing) Activate(version uint32) (*KeyRing, error) {
	h := r.find(version)
	if h == nil {
		return nil, fmt.Errorf("subject: no key has the version %d", version)
	}
	return &KeyRing{active: h, all: r.all}, nil
}

// ActiveVersion returns the version that pseudonyms are made with.
func (r *KeyRing) ActiveVersion() uint32 { return r.active.version }

// Versions returns the loaded versions in ascending order.
func (r *KeyRing) Versions() []uint32 {
	versions := make([]uint32, len(r.all))
	for i, h := range r.all {
		versions[i] = h.version
	}
	slices.Sort(versions)
	return versions
}

func (r *KeyRing) find(version uint32) *hasher {
	for _, h := range r.all {
		if h.version == version {
			return h
		}
	}
	return nil
}

func (r *KeyRing) redacted() string {
	if r == nil || r.active == nil {
		return "key ring (empty)"
	}
	return fmt.Sprintf("key ring %v, v%d active (secrets withheld)", r.Versions(), r.active.version)
}

// String returns the versions and no secret.
func (r *KeyRing) String() string { return r.redacted() }

// Format writes String for every verb and flag.
func (r *KeyRing) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(r.redacted())) }

// MarshalText returns String, so that no encoder looks inside.
func (r *KeyRing) MarshalText() ([]byte, error) { return []byte(r.redacted()), nil }

// LogValue returns String.
func (r *KeyRing) LogValue() slog.Value { return slog.StringValue(r.redacted()) }
