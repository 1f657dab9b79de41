package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pvelens/allowlist"
	"pvelens/tools"
)

// A call that does not end by itself after a signal is left behind.
const lastGrace = 3 * time.Second

func (a *app) serveCommand() *cobra.Command {
	only := ""
	c := &cobra.Command{Use: "serve [--tools a,b]", Short: "Speak MCP on stdio", GroupID: "start", Args: cobra.NoArgs,
		Long: "Serves the tools to an MCP client on standard input and output. Standard output is the protocol; messages go to standard error. The profile is chosen a call, or by --profile for calls that name none."}
	c.Flags().StringVar(&only, "tools", "", "serve only these tools, separated by commas")
	c.RunE = func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), only) }
	return c
}

func (a *app) serve(ctx context.Context, only string) error {
	if a.at != "" {
		return usage("serve judges as of now; --at is for single questions")
	}
	ts := tools.All()
	if only != "" {
		names := strings.Split(only, ",")
		for i := range names {
			names[i] = strings.ReplaceAll(strings.TrimSpace(names[i]), "-", "_")
			if !slices.ContainsFunc(ts, func(t tools.Tool) bool { return t.Name == names[i] }) {
				return usage("no tool named %s", names[i]).hint("pvelens --help lists them")
			}
		}
		ts = slices.DeleteFunc(ts, func(t tools.Tool) bool { return !slices.Contains(names, t.Name) })
	}
	log := slog.New(calm{slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})})
	out := realStdout(a.out)
	a.serving = true
	env, err := a.env()
	if err != nil {
		return err
	}
	env.Progress, env.Tools = tools.MCPProgress, toolNames(ts)
	env.Open = func(name string) (*tools.Backend, error) {
		if name == "" {
			name = a.profile
		}
		return a.open(name)
	}
	fmt.Fprintf(a.err, "pvelens %s serving %d tools, allowlist sha256 %s\n", version(), len(ts), allowlist.Hash())
	server := tools.NewServer(ctx, env, ts, version(), log)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastGrace, func() { os.Exit(exitOK) }) })
	defer stop()
	return tools.Serve(ctx, server, a.in, out)
}

// calm leaves out that a signal ended the server: the SDK calls it an error, and
// clients end servers so.
type calm struct{ slog.Handler }

func (h calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "server run cancelled" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// realStdout keeps the protocol's stream for the protocol: whatever else prints
// to standard output goes to standard error from here on.
func realStdout(w io.Writer) io.WriteCloser {
	if f, ok := w.(*os.File); ok && f == os.Stdout {
		os.Stdout = os.Stderr
		return f
	}
	return nopCloser{w}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
