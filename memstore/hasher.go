package memstore

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unique"

	"github.com/stintlimit/stint"
)

// hasher hashes what counters are called by, with secrets of one store. The low
// half of a hash finds a counter in its table, the high half finds the shard.
//
// maphash.Comparable over tag and digest would do, and takes three times as
// long: it copies the digest twice, which stalls a processor that has only
// just written it. Digests come out of a keyed hash, and only their mixing
// with the tag is left to do.
type hasher struct {
	seed  maphash.Seed
	salts [2]uint64
}

func newHasher() hasher {
	seed := maphash.MakeSeed()
	return hasher{seed, [2]uint64{maphash.Comparable(seed, 1), maphash.Comparable(seed, 2)}}
}

func (h *hasher) hash(tag unique.Handle[string], subject *stint.Pseudonym) uint64 {
	d := &subject.Digest
	low := uint64(binary.LittleEndian.Uint32(d[0:])) | uint64(binary.LittleEndian.Uint32(d[4:]))<<32
	high := uint64(binary.LittleEndian.Uint32(d[8:])) | uint64(binary.LittleEndian.Uint32(d[12:]))<<32
	mixed := fold(low^maphash.Comparable(h.seed, tag), high^h.salts[0])
	return fold(mixed^uint64(subject.Version), h.salts[1])
}

// fold is a multiplication whose high half is not lost.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
