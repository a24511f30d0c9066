package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stintlimit/stint/cmd/stint/internal/app"
	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/cmd/stint/internal/doctor"
	"github.com/stintlimit/stint/redisstore"
)

func newDoctor() *cobra.Command {
	var file, username, passwordFile string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor --config FILE",
		Short: "Say what is wrong with the Redis of a configuration",
		Long: `Say what is wrong with the Redis of a configuration, a line a check: PASS, INFO,
WARN or FAIL, what was seen, and what to do. It connects as configured, and
changes nothing. The account that limits may not look at much: with --username
and --password-file the rest is asked under the inspection account that
'stint acl' prints.

It exits with 1 if a check is FAIL.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := inspector(username, passwordFile)
			if err != nil {
				return err
			}
			return examine(cmd, file, asJSON, options)
		},
	}
	f := c.Flags()
	f.StringVar(&file, "config", "", "configuration `FILE`; see docs/configuration.md")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringVar(&username, "username", "", "inspection account, `USER`")
	f.StringVar(&passwordFile, "password-file", "", "`FILE` with the password of the inspection account")
	_ = c.MarkFlagRequired("config") // it exists
	return c
}

// inspector reads the inspection account, if there is one.
func inspector(username, passwordFile string) ([]redisstore.InspectOption, error) {
	if (username == "") != (passwordFile == "") {
		return nil, errors.New("--username and --password-file belong together")
	}
	if username == "" {
		return nil, nil
	}
	text, err := os.ReadFile(passwordFile)
	if err != nil {
		return nil, err
	}
	password := strings.TrimSpace(string(text))
	if password == "" {
		return nil, fmt.Errorf("%s is empty", passwordFile)
	}
	return []redisstore.InspectOption{redisstore.WithInspector(username, password)}, nil
}

func examine(cmd *cobra.Command, file string, asJSON bool, options []redisstore.InspectOption) error {
	c, err := config.Load(file, config.Overrides{})
	if err != nil {
		return err
	}
	if c.Store.Redis == nil {
		return fmt.Errorf("%s keeps budgets in memory: there is no Redis to look at", file)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	findings, err := redisstore.Inspect(ctx, app.RedisConfig(c.Store.Redis), options...)
	if err != nil {
		return fmt.Errorf("store.redis: %w", err)
	}
	write := doctor.WriteText
	if asJSON {
		write = doctor.WriteJSON
	}
	if err := write(cmd.OutOrStdout(), findings); err != nil {
		return &failure{err}
	}
	if ctx.Err() != nil {
		return &failure{errors.New("interrupted: what is above is not all")}
	}
	switch n := doctor.Failed(findings); n {
	case 0:
		return nil
	case 1:
		return &failure{errors.New("a check failed")}
	default:
		return &failure{fmt.Errorf("%d checks failed", n)}
	}
}
