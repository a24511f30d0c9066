package memstore_test

import (
	"testing"

	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

func newFixture(testing.TB) storetest.Fixture {
	s := memstore.New(memstore.Config{})
	return storetest.Fixture{Store: s, Forget: func() error { s.Reset(); return nil }}
}

func TestConformance(t *testing.T) { storetest.Run(t, newFixture) }
