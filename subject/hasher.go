package subject

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/stintlimit/stint"
)

// hasher computes pseudonyms under one key.
type hasher struct {
	version uint32
	pool    sync.Pool // of *state
}

// state is an HMAC whose key is already absorbed, and the memory for passing
// strings through hash.Hash without an allocation.
type state struct {
	mac     hash.Hash
	scratch [512]byte
	sum     [sha256.Size]byte
}

func newHasher(k Key) *hasher {
	h := &hasher{version: k.version}
	h.pool.New = func() any { return &state{mac: hmac.New(sha256.New, k.secret())} }
	return h
}

func (h *hasher) pseudonym(kind Kind, identity, operation string) stint.Pseudonym {
	s := h.pool.Get().(*state)
	s.mac.Reset()
	s.write(string(kind))
	s.write(identity)
	s.write(operation)
	p := stint.Pseudonym{Version: h.version}
	copy(p.Digest[:], s.mac.Sum(s.sum[:0]))
	h.pool.Put(s)
	return p
}

// write adds the length of part in bytes, in eight bytes, and then part.
// Without the lengths ("ab", "c") and ("a", "bc") would be one subject.
func (s *state) write(part string) {
	n := copy(s.scratch[8:], part)
	binary.BigEndian.PutUint64(s.scratch[:8], uint64(len(part)))
	s.mac.Write(s.scratch[:8+n])
	for part = part[n:]; part != ""; part = part[n:] {
		n = copy(s.scratch[:], part)
		s.mac.Write(s.scratch[:n])
	}
}
