package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release overrides what the build says of itself:
// go build -ldflags "-X main.release=v1.2.3".
var release string

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which stint this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "stint %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil {
				return &failure{err}
			}
			return nil
		},
	}
}

func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
