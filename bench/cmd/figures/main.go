// Command figures measures what stint promises about speed and size, and
// prints Markdown. Its tables are made by package bench.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stintlimit/stint/bench"
	"github.com/stintlimit/stint/internal/redistest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	var s bench.Size
	flag.IntVar(&s.Rounds, "rounds", 7, "rounds of each contestant; figures are medians")
	flag.IntVar(&s.Operations, "n", 200_000, "decisions in a round")
	flag.IntVar(&s.Keys, "keys", 10_000, "keys that the decisions go to")
	only := flag.String("only", "memory,http,redis", "which tables")
	flag.Parse()

	tables := []struct {
		name    string
		measure func(bench.Size) (bench.Table, error)
	}{
		{"memory", bench.Memory},
		{"http", bench.HTTP},
		{"redis", onRedis},
	}
	fmt.Fprintf(os.Stdout, "Measured on %s.\n", bench.Machine())
	chosen := strings.Split(*only, ",")
	for _, t := range tables {
		if !slices.Contains(chosen, t.name) {
			continue
		}
		table, err := t.measure(s)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		fmt.Fprintf(os.Stdout, "\n%s", table)
	}
	return nil
}

// onRedis measures on a server of its own, which it stops.
func onRedis(s bench.Size) (t bench.Table, err error) {
	h := &host{}
	defer h.cleanUp()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case hostFailure:
			err = r.error
		default:
			panic(r)
		}
	}()
	return bench.Redis(s, redistest.Start(h).Addr())
}
