package stint_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

func Example() {
	limiter, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{
		{ID: "api", Limits: []stint.Limit{stint.TokenBucket{Capacity: 2, Refill: 1, Every: time.Minute}}},
	}, stint.WithClock(func() time.Time { return time.UnixMilli(0) }))
	if err != nil {
		panic(err)
	}
	request := stint.Request{Policy: "api", Subject: stint.Pseudonym{Version: 1}, Cost: 1}
	for range 3 {
		d, err := limiter.Evaluate(context.Background(), request)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Outcome, d.Remaining, d.RetryAfter)
	}
	// Output:
	// allowed 1 0s
	// allowed 0 0s
	// denied 0 1m0s
}

func ExampleLimiter_EvaluateGroup() {
	limiter, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{
		{ID: "client", Limits: []stint.Limit{stint.FixedWindow{Limit: 100, Window: time.Minute}}},
		{ID: "export", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}},
	})
	if err != nil {
		panic(err)
	}
	client := stint.Pseudonym{Version: 1}
	both := []stint.Request{{Policy: "client", Subject: client, Cost: 1}, {Policy: "export", Subject: client, Cost: 1}}
	for range 2 {
		v, err := limiter.EvaluateGroup(context.Background(), stint.EvaluationID{}, both)
		if err != nil {
			panic(err)
		}
		first, second := v.Decision(0), v.Decision(1)
		fmt.Println(v.Allowed, first.Outcome, first.Remaining, second.Outcome, second.Remaining)
	}
	// The second one was refused as a whole, and spent nothing on "client".

	// Output:
	// true allowed 99 allowed 0
	// false allowed 99 denied 0
}

func ExampleLimiter_Refund() {
	limiter, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{
		{ID: "exports", Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: 24 * time.Hour}}},
	})
	if err != nil {
		panic(err)
	}
	id := stint.NewEvaluationID("exporter", "job 17")
	job := []stint.Request{{Policy: "exports", Subject: stint.Pseudonym{Version: 1}, Cost: 4}}
	show := func(v stint.Verdict, err error) {
		if err != nil {
			fmt.Println(stint.ReasonOf(err))
			return
		}
		d := v.Decision(0)
		fmt.Println(d.Outcome, d.Remaining)
	}
	show(limiter.EvaluateGroup(context.Background(), id, job))
	show(limiter.Refund(context.Background(), id, job)) // the job failed
	show(limiter.Refund(context.Background(), id, job)) // and somebody says so twice
	show(limiter.EvaluateGroup(context.Background(), id, job))
	// Output:
	// allowed 6
	// allowed 10
	// allowed 10
	// EVALUATION_MISMATCH
}
