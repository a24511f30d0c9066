package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/stintlimit/stint/cmd/stint/internal/config"
)

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say everything that is wrong with a configuration",
		Long: `Say everything that is wrong with a configuration, each problem on a line of its
own as file:line:column: path: message. Keys and passwords that the file names
are read too. Nothing is started.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := config.Load(args[0], config.Overrides{}); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", args[0])
			return nil
		},
	}
}

// isConfig reports whether err is about a configuration, and so says where it
// belongs.
func isConfig(err error) bool {
	var problems *config.Error
	var file *fs.PathError
	return errors.As(err, &problems) || errors.As(err, &file)
}
