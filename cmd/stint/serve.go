package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stintlimit/stint/cmd/stint/internal/app"
	"github.com/stintlimit/stint/cmd/stint/internal/config"
)

func newServe() *cobra.Command {
	var file string
	var o config.Overrides
	c := &cobra.Command{
		Use:   "serve",
		Short: "Limit requests until told to stop",
		Long: `Limit requests until told to stop.

Without --config it runs a built-in example and prints what to try. SIGTERM or
SIGINT lets requests in flight end, as long as drain_timeout says; a second one
ends the program at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, file, o) },
	}
	f := c.Flags()
	f.StringVar(&file, "config", "", "configuration `FILE`; see docs/configuration.md")
	f.StringVar(&o.Listen, "listen", "", "`ADDR` of what is limited, in place of the file's listen")
	f.StringVar(&o.AdminListen, "admin-listen", "", "`ADDR` of probes and metrics, in place of admin.listen")
	f.StringVar(&o.Upstream, "upstream", "", "`URL` that requests are sent on to, in place of the file's upstream")
	return c
}

func serve(cmd *cobra.Command, file string, o config.Overrides) error {
	c, err := load(cmd, file, o)
	if err != nil {
		return err
	}
	options := app.Options{Version: version(), Logger: app.NewLogger(cmd.ErrOrStderr(), c.Log)}
	if !cmd.Flags().Changed("config") {
		options.Started = func(a app.Addresses) { whatToTry(cmd.OutOrStdout(), a) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal is not caught
	if err := app.Run(ctx, c, options); err != nil {
		return &failure{err}
	}
	return nil
}

func load(cmd *cobra.Command, file string, o config.Overrides) (*config.Config, error) {
	if cmd.Flags().Changed("config") {
		return config.Load(file, o)
	}
	return config.Example(o)
}

func whatToTry(w io.Writer, a app.Addresses) {
	fmt.Fprintf(w, `stint runs its built-in example: each client address may send 10 requests, and 10 more every 10 s.

  curl -i http://%[1]s/        # eleven times: ten are admitted, one is refused
  curl http://%[2]s/metrics    # what was decided

In front of a server of yours: stint serve --upstream http://127.0.0.1:3000
With limits of your own:       stint serve --config FILE
`, reachable(a.Listen), reachable(a.Admin))
}

// reachable replaces the address of all interfaces by one that a client can
// connect to.
func reachable(listen string) string {
	a, err := netip.ParseAddrPort(listen)
	if err != nil || !a.Addr().IsUnspecified() {
		return listen
	}
	return net.JoinHostPort("localhost", fmt.Sprint(a.Port()))
}
