package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stintlimit/stint/redisstore"
)

func newACL() *cobra.Command {
	var version, prefix string
	c := &cobra.Command{
		Use:   "acl",
		Short: "Print the accounts that Redis or Valkey should have",
		Long: `Print the accounts that Redis or Valkey should have, as an ACL file: one that
limits and one that inspects, each with what it needs and no more. Replace each
SHA256-OF-… by the digest of a password; a server refuses the file until then.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := redisstore.ACL(version, prefix)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
				return &failure{err}
			}
			return nil
		},
	}
	c.Flags().StringVar(&version, "for", redisstore.ACLFor8, "`VERSION` of the server: "+redisstore.ACLFor70+" (Redis before 7.4) or "+redisstore.ACLFor8+" (newer, and Valkey)")
	c.Flags().StringVar(&prefix, "prefix", redisstore.DefaultPrefix, "`PREFIX` of the keys, as in the configuration")
	return c
}
