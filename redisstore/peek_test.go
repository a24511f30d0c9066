package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// Whatever became of a peek: it has spent nothing.
func TestAPeekIsNeverIndeterminate(t *testing.T) {
	w := newFaultyWire(t, time.Second)
	w.warm(w.tracked)
	for _, fault := range []redistest.Fault{redistest.DropReply, redistest.SpoilReply, redistest.CutCommand} {
		w.proxy.Next(fault, "evalsha")
		_, err := w.store.Decide(context.Background(), group(stint.Peek, stint.EvaluationID{}, epoch, stint.Charge{Policy: w.tracked, Subject: subject("a")}))
		w.want(err, stint.NoMutation)
		w.wantSpent(w.tracked, 1)
	}
}
