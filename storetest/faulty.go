package storetest

import (
	"context"
	"errors"

	"github.com/stintlimit/stint"
)

// Faulty returns a store that decides nothing and answers every group with an
// [stint.Error] of that reason. It is safe for concurrent use.
func Faulty(r stint.Reason) stint.Store { return faulty{r} }

var errFaulty = errors.New("storetest: a faulty store")

type faulty struct{ reason stint.Reason }

func (f faulty) Decide(context.Context, stint.Group) (stint.Verdict, error) {
	return stint.Verdict{}, &stint.Error{Reason: f.reason, Cause: errFaulty}
}
