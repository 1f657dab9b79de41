package main

import (
	"github.com/spf13/cobra"

	"pvelens/tools"
	"pvelens/tools/report"
)

// formats adds --format to the tools whose findings other programs take.
func (a *app) formats(tools.Tool, *cobra.Command) func() string {
	return func() string { return "" }
}

// failAs turns a tool's failure into what the format's reader expects.
func (a *app) failAs(_ string, err error) error { return err }

func (a *app) export(r report.Tabler, _ string) error { return a.show(r) }
