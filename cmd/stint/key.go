package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stintlimit/stint/subject"
)

func newKey() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Make keys for pseudonyms",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(&cobra.Command{
		Use:   "new",
		Short: "Print a fresh key: base64 of 32 random bytes",
		Long: `Print a fresh key: base64 of 32 random bytes. It is a secret: write it to a file
that only stint can read, and name the file in identity.pseudonym_keys.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), subject.GenerateKey()); err != nil {
				return &failure{err}
			}
			return nil
		},
	})
	return c
}
