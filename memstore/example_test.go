package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// A full store refuses whom it does not know, and keeps whom it knows.
func ExampleConfig() {
	limiter, err := stint.New(memstore.New(memstore.Config{MaxSubjects: 1}), []stint.Policy{
		{ID: "api", Limits: []stint.Limit{stint.FixedWindow{Limit: 100, Window: time.Hour}}},
	})
	if err != nil {
		panic(err)
	}
	for _, subject := range []byte("aba") {
		d, err := limiter.Evaluate(context.Background(), stint.Request{
			Policy: "api", Subject: stint.Pseudonym{Version: 1, Digest: [16]byte{subject}}, Cost: 1,
		})
		fmt.Printf("%c %v %v\n", subject, d.Allowed(), errors.Is(err, stint.AdmissionRejected))
	}
	// Output:
	// a true false
	// b false true
	// a true false
}
