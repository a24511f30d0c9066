package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// host is the little of a test that redistest asks of one, for a program. It is
// for one goroutine.
type host struct {
	testing.TB // nil: what is not here panics

	cleanups []func()
}

// hostFailure ends a program as Fatal ends a test.
type hostFailure struct{ error }

func (h *host) Helper()                      {}
func (h *host) Fatal(args ...any)            { panic(hostFailure{errors.New(fmt.Sprint(args...))}) }
func (h *host) Fatalf(f string, args ...any) { panic(hostFailure{fmt.Errorf(f, args...)}) }
func (h *host) Cleanup(f func())             { h.cleanups = append(h.cleanups, f) }

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "stint-figures-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (h *host) cleanUp() {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		f := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		f()
	}
}
