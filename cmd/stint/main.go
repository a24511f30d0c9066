// Command stint is a rate limiter in front of HTTP servers.
//
//	stint serve [--config FILE]   limits requests; without a file, an example
//	stint check FILE              says what is wrong with a configuration
//	stint doctor --config FILE    says what is wrong with its Redis
//	stint acl                     prints the accounts that Redis should have
//	stint key new                 prints a fresh key for pseudonyms
//	stint version                 prints which stint this is
//
// It exits with 0 when all is well, 1 when something failed while it ran, and
// 2 when it was called or configured wrongly.
//
// The command parses flags, handles signals and chooses exit codes. What it
// does is in its internal packages.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:               "stint",
		Short:             "A rate limiter in front of HTTP servers",
		Long:              "A rate limiter in front of HTTP servers.\n\nIt exits with 0 when all is well, 1 when something failed while it ran, and 2 when it\nwas called or configured wrongly.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(newServe(), newCheck(), newDoctor(), newACL(), newKey(), newVersion())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	called, err := root.ExecuteC()
	var failed *failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed):
		fmt.Fprintf(stderr, "stint: %v\n", err)
		return exitFailure
	case isConfig(err):
		fmt.Fprintln(stderr, err)
	default:
		fmt.Fprintf(stderr, "stint: %v\nTry '%s --help'.\n", err, called.CommandPath())
	}
	return exitUsage
}

// failure is what went wrong while the program ran, although it was called and
// configured well.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }
