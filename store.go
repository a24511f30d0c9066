package stint

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"iter"
	"strconv"
	"time"
)

// Pseudonym stands for a subject outside the process that knows who it is. No
// raw identity fits in one; package subject makes them.
type Pseudonym struct {
	Version uint32 // of the key it was made with
	Digest  [16]byte
}

// String returns "v<version>:<base64url>".
func (p Pseudonym) String() string { return string(p.Append(nil)) }

// Append appends the text of String to b.
func (p Pseudonym) Append(b []byte) []byte {
	b = append(b, 'v')
	b = strconv.AppendUint(b, uint64(p.Version), 10)
	b = append(b, ':')
	return base64.RawURLEncoding.AppendEncode(b, p.Digest[:])
}

// EvaluationID names one evaluation, so that repeating it spends nothing more.
// The zero EvaluationID is none: then only the store can repeat the evaluation.
type EvaluationID struct{ digest [16]byte }

// NewEvaluationID returns the id that a caller gave to an evaluation. Ids of
// different callers never meet. Use it only for callers that may be trusted
// with it: one that reuses an id gets the earlier answer.
func NewEvaluationID(caller, id string) EvaluationID {
	h := sha256.New()
	writeFramed(h, caller)
	writeFramed(h, id)
	var e EvaluationID
	copy(e.digest[:], h.Sum(nil))
	return e
}

// IsZero reports whether there is no id.
func (e EvaluationID) IsZero() bool { return e == EvaluationID{} }

// Bytes returns the id as stores keep it.
func (e EvaluationID) Bytes() [16]byte { return e.digest }

// String returns the id in hexadecimal.
func (e EvaluationID) String() string { return hex.EncodeToString(e.digest[:]) }

func writeFramed(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

// Op is what a group asks for.
type Op uint8

const (
	// Take spends, if every charge of an enforced policy passes.
	Take Op = iota
	// Peek answers as Take would, and writes nothing.
	Peek
	// Refund gives back what the evaluation with the group's ID spent.
	Refund
)

// MaxCharges bounds the charges of one group.
const MaxCharges = 32

// usualRest is how many charges behind the first a group makes room for at
// once: nearly all groups have no more.
const usualRest = 3

// Charge is one counter of a group and what to spend on it.
type Charge struct {
	Policy  *Policy // frozen
	Subject Pseudonym
	Cost    int64 // 1 to Policy.MaximumCost; 0 only in a Peek

	// At is the receipt of what a Refund gives back: Decision.At of the
	// charge, epoch ms. It counts where the store remembers no evaluation
	// with the group's ID; 0 then gives back nothing. Take and Peek ignore it.
	At int64
}

// Group is what a [Store] decides as one: everything passes, or nothing is
// spent. A [Limiter] makes groups that keep the promises written here.
type Group struct {
	Op Op

	// ID makes the evaluation repeatable by its caller. It is recorded beside
	// the first charge's counter, as bounded by that charge's Policy.Dedup.
	// A Refund names the evaluation that it undoes: its ID is not zero, and
	// its first charge's policy has Dedup on.
	ID EvaluationID

	// Now is the caller's clock in epoch milliseconds. A store that trusts a
	// server's clock more ignores it.
	Now int64

	// Deadline is when the caller stops listening, on this process's clock.
	// Nothing is spent after it.
	Deadline time.Time

	n     int
	first Charge
	rest  []Charge
}

// Len returns the number of charges, 1 to MaxCharges.
func (g *Group) Len() int { return g.n }

// Charge returns charge i.
func (g *Group) Charge(i int) *Charge {
	if i == 0 {
		return &g.first
	}
	return &g.rest[i-1]
}

// Charges returns all charges with their indexes.
func (g *Group) Charges() iter.Seq2[int, *Charge] {
	return func(yield func(int, *Charge) bool) {
		for i := range g.n {
			if !yield(i, g.Charge(i)) {
				return
			}
		}
	}
}

// Append adds a charge. Its counter, policy key and subject, must differ from
// those of the charges already there.
func (g *Group) Append(c Charge) {
	switch {
	case g.n == 0:
		g.first = c
	case g.rest == nil:
		g.rest = append(make([]Charge, 0, usualRest), c)
	default:
		g.rest = append(g.rest, c)
	}
	g.n++
}

// Payload digests what the evaluation spends and where: a repeated id with
// another payload is a mistake of its caller. A refund has the payload of what
// it undoes, whatever its receipts.
func (g *Group) Payload() [16]byte {
	h := sha256.New()
	for i := range g.n {
		c := g.Charge(i)
		writeFramed(h, c.Policy.key)
		writeFramed(h, string(c.Subject.Append(nil)))
		writeFramed(h, strconv.FormatInt(c.Cost, 10))
	}
	var d [16]byte
	copy(d[:], h.Sum(nil))
	return d
}

// A Store decides groups on the budgets it keeps. It is safe for concurrent
// use.
//
// Decide spends every charge of the group, or nothing. It never returns a zero
// Verdict without an error; every error is an [*Error] that says what is known
// about spending; and it keeps nothing of the group after it returned. A
// charge of a shadow policy never decides about the others: what it cannot
// evaluate is ShadowFailed.
//
// A Refund is as atomic, is recorded under its ID in place of what it undoes,
// and denies nothing: see [Limiter.Refund].
type Store interface {
	Decide(ctx context.Context, g Group) (Verdict, error)
}
