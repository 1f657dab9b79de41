package main

import (
	_ "embed"
	"fmt"

	"github.com/spf13/cobra"

	"pvelens/tools"
)

func (a *app) doctorCommand() *cobra.Command {
	resolveOnly := false
	c := &cobra.Command{Use: "doctor", Short: "Look at each host: ssh_config, login, shell, rights, gate, forms", GroupID: "start", Args: cobra.NoArgs,
		Long: "Looks at each host of the profile and says what to do: what ssh_config makes of it, whether its host key is known and our key accepted, whether the login shell is silent, which rights we have, whether a gate enforces the same allowlist there, and which forms work. Reads only. Exit status 4 when something does not work."}
	c.Flags().BoolVar(&resolveOnly, "resolve-only", false, "only show what ssh_config makes of each host; no connection")
	c.RunE = func(c *cobra.Command, _ []string) error {
		env, err := a.env()
		if err != nil {
			return err
		}
		a.runsNothing = resolveOnly
		d, err := tools.Diagnose(c.Context(), env, a.profile, resolveOnly)
		a.clearProgress()
		if err != nil {
			return err
		}
		return a.show(d)
	}
	return c
}

//go:embed gate_install.sh
var gateInstall string

func (a *app) gateCommand() *cobra.Command {
	c := &cobra.Command{Use: "gate", Short: "Show the optional lock on the node", GroupID: "trust", Args: cobra.NoArgs,
		Long: "A node can enforce the same allowlist itself: a key then opens nothing but the permitted commands, and root is needed for no login. pvelens prints what to run there, and runs none of it.",
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(&cobra.Command{Use: "install-script", Short: "Print the script that sets a node up", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		_, err := fmt.Fprint(a.out, withHash(gateInstall))
		return err
	}})
	return c
}
