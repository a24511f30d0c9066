package redisstore

import "github.com/stintlimit/stint"

// manner is how a group is sent to a node of a Cluster; the zero manner is
// the usual one.
type manner struct {
	// asking: the slot is on its way to this node, which answers for it only
	// to those who say that they know.
	asking bool

	// alone: the counter is the only key, so that a slot on the move can
	// decide. Nothing is recorded, and a lost reply is not asked for again.
	alone bool
}

// canGoAlone reports whether g needs no key but one counter's.
func canGoAlone(g *stint.Group) bool { return g.Len() == 1 && !recorded(g) }
