package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"pvelens/allowlist"
	"pvelens/tools"
	"pvelens/tools/report"
)

// The exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitRefused
	exitIncomplete
)

type stdio struct {
	in       io.ReadCloser
	out, err io.Writer
}

// app is one run of the program.
type app struct {
	stdio
	getenv  func(string) string
	profile string
	detail  string
	at      string
	json    bool
	noColor bool
	code    int // exit status of a command that printed its answer

	serving bool // tell where the audit log begins
	// runsNothing is set where no command will be sent, so none has to be noted.
	runsNothing bool

	mu       sync.Mutex
	close    []func()
	backends map[string]*tools.Backend // by the profile's own name
}

// run executes the command line and returns the exit status.
func run(ctx context.Context, args []string, io stdio, getenv func(string) string) (code int) {
	a := &app{stdio: io, getenv: getenv}
	defer a.shutdown()
	defer func() {
		// A monitoring program would take Go's own exit status 2 for CRITICAL.
		if p := recover(); p != nil {
			fmt.Fprintf(io.err, "pvelens: INTERNAL: a mistake of pvelens itself: %v\n", p)
			if code = exitFailed; wantsNagios(args) {
				code = a.unknown(errors.New("a mistake of pvelens itself"))
			}
		}
	}()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	if err := root.ExecuteContext(ctx); err != nil {
		if wantsNagios(args) {
			return a.unknown(err)
		}
		return a.fail(err)
	}
	return a.code
}

func (a *app) shutdown() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.close) - 1; i >= 0; i-- {
		a.close[i]()
	}
	a.close = nil
}

// onExit runs f when the program ends.
func (a *app) onExit(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.close = append(a.close, f)
}

const about = `pvelens is a read-only lens on Proxmox VE and the Docker workloads inside its
guests, over plain key-based SSH. It installs nothing, and no command that it
may run asks for a change: ` + "`pvelens allowlist`" + ` prints them all.

Try it without a Proxmox: pvelens demo
Then: pvelens init --node pve1, pvelens doctor, pvelens list-guests

Exit status: 0 ok, 1 failed, 2 usage or invalid argument, 3 refused by the
allowlist, 4 the answer is incomplete.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pvelens",
		Short:         "a read-only lens on Proxmox VE over SSH",
		Long:          about,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.profile, "profile", "", "profile to ask; demo is built in")
	f.StringVar(&a.detail, "detail", "", "concise or detailed")
	f.StringVar(&a.at, "at", "", "judge ages and limits as of this time (RFC 3339)")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.BoolVar(&a.noColor, "no-color", false, "print without colours")
	_ = root.RegisterFlagCompletionFunc("profile", a.completeProfile)
	_ = root.RegisterFlagCompletionFunc("detail", cobra.FixedCompletions([]string{"concise", "detailed"}, cobra.ShellCompDirectiveNoFileComp))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return badFlag(c, err)
	})
	root.AddGroup(&cobra.Group{ID: "start", Title: "Start here:"}, &cobra.Group{ID: "tools", Title: "Questions:"}, &cobra.Group{ID: "trust", Title: "Trust:"})
	root.AddCommand(a.starters()...)
	for _, t := range tools.All() {
		root.AddCommand(a.toolCommand(t))
	}
	root.SetHelpCommand(helpCommand(root))
	root.SetCompletionCommandGroupID("start")
	root.InitDefaultCompletionCmd()
	checkWords(root)
	return root
}

// usageError is a mistake on the command line.
type usageError struct{ msg, next string }

func (e *usageError) Error() string { return e.msg }

func usage(format string, args ...any) *usageError {
	return &usageError{msg: fmt.Sprintf(format, args...)}
}

func (e *usageError) hint(format string, args ...any) *usageError {
	e.next = fmt.Sprintf(format, args...)
	return e
}

// fail prints an error as one line, or as JSON too, and returns the exit status.
func (a *app) fail(err error) int {
	e := tools.AsError(err)
	code := exitFailed
	var u *usageError
	var refusal *allowlist.Refusal
	switch {
	case errors.As(err, &u):
		e, code = &tools.Error{Code: report.InvalidArgument, Message: u.msg, Hint: u.next}, exitUsage
	case errors.As(err, &refusal):
		code = exitRefused
	case e.Code == report.InvalidArgument:
		code = exitUsage
	case e.Code == report.Refused:
		code = exitRefused
	}
	spoken := *e
	spoken.Hint = asCommands(e.Hint)
	fmt.Fprintf(a.err, "pvelens: %s\n", spoken.Error())
	if a.json {
		out, _ := tools.Encode(map[string]any{"error": map[string]string{"code": string(e.Code), "message": e.Message, "hint": e.Hint}})
		fmt.Fprintf(a.out, "%s\n", out)
	}
	return code
}

// judgedAt parses --at.
func (a *app) judgedAt() (*time.Time, error) {
	if a.at == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, a.at)
	if err != nil {
		return nil, usage("--at must be a time such as 2026-11-29T16:55:00Z")
	}
	return &t, nil
}
