package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pvelens/tools"
	"pvelens/tools/report"
)

// exporters write an audit for other programs, by the name of their format.
var exporters = map[string]func(a *app, w io.Writer, r *report.Audit) error{
	"nagios":     nagios,
	"prometheus": prometheus,
	"sarif":      sarif,
	"markdown":   markdown,
}

// formatNames are what --format takes; text is what people read.
var formatNames = []string{"text", "nagios", "prometheus", "sarif", "markdown"}

// A formatFlag is the value of --format.
type formatFlag struct{ name string }

func (f *formatFlag) String() string { return f.name }
func (f *formatFlag) Type() string   { return "string" }

func (f *formatFlag) Set(name string) error {
	if !slices.Contains(formatNames, name) {
		return errors.New("want one of " + strings.Join(formatNames, ", "))
	}
	f.name = name
	return nil
}

// formats adds --format to the tool whose findings other programs take.
func (a *app) formats(t tools.Tool, c *cobra.Command) func() string {
	if t.Name != "config_audit" {
		return func() string { return "" }
	}
	f := &formatFlag{"text"}
	c.Flags().Var(f, "format", "text, or a report for other programs: "+strings.Join(formatNames[1:], ", "))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames, cobra.ShellCompDirectiveNoFileComp))
	return f.String
}

// export writes every finding that the filters chose, whatever the page is.
func (a *app) export(r report.Tabler, format string) error {
	audit, ok := r.(*report.Audit)
	write := exporters[format]
	if !ok || write == nil {
		return a.show(r)
	}
	if !audit.Complete {
		a.code = exitIncomplete
	}
	return write(a, a.out, audit)
}

// failAs turns a tool's failure into what the format's reader expects.
func (a *app) failAs(format string, err error) error {
	if format == "prometheus" {
		fmt.Fprint(a.out, upMetric(0))
	}
	return err
}

// wantsNagios reports whether a monitoring program reads the output: then its
// own codes hold, and any failure of ours is UNKNOWN, even one that comes before
// the flags were read.
func wantsNagios(args []string) bool {
	for i, arg := range args {
		if arg == "--" {
			return false
		}
		if arg == "--format=nagios" || arg == "--format" && i+1 < len(args) && args[i+1] == "nagios" {
			return true
		}
	}
	return false
}
