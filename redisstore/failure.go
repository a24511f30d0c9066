package redisstore

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
)

// beforeScript lists the replies that a server makes before it starts a
// script: what they answer has changed nothing.
var beforeScript = []string{
	"NOSCRIPT", "NOPERM", "NOAUTH", "OOM", "READONLY", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN",
	"BUSY", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "CROSSSLOT",
}

// failure is an attempt without answers.
type failure struct {
	*stint.Error

	// lost: the batch was sent and no reply that can be read came back. Only
	// then does sending it again tell more.
	lost bool
}

func proves(r stint.Reason, cause error) *failure {
	return &failure{Error: &stint.Error{Reason: r, Cause: cause}}
}

// lostReply is a failure after the last byte.
func lostReply(cause error) *failure {
	return &failure{Error: &stint.Error{Reason: stint.OutcomeUnknown, Cause: cause}, lost: true}
}

// classify says what a failed attempt proves: by phase, then by the origin of
// the reply, then by its prefix.
func classify(err error, p phase) *failure {
	if p != written {
		return proves(stint.BeforeSend, err)
	}
	var reply redis.Error
	switch {
	case !errors.As(err, &reply) || errors.Is(err, redis.Nil):
		return lostReply(err)
	case !fromInside(reply.Error()) && slices.Contains(beforeScript, firstWord(reply.Error())):
		return proves(stint.NoMutation, err)
	}
	return proves(stint.OutcomeUnknown, err)
}

// fromInside reports whether a reply was made by a command inside a script. It
// may begin like one that was made before the script.
func fromInside(reply string) bool { return strings.Contains(reply, "script: ") }

func firstWord(reply string) string {
	word, _, _ := strings.Cut(reply, " ")
	return word
}

// isNoScript reports whether the server does not know the script.
func isNoScript(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && firstWord(reply.Error()) == "NOSCRIPT" && !fromInside(reply.Error())
}
