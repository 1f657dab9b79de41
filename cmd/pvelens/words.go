package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pvelens/tools/report"
)

func init() { cobra.EnableCommandSorting = false } // the order says where to begin

// nearEnough is how many letters a typo may differ from what is suggested.
const nearEnough = 2

// subcommand refuses words that are no command of c, and suggests one.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := strings.ReplaceAll(strings.ToLower(args[0]), "_", "-")
	e := usage("unknown command %q for %q", args[0], c.CommandPath())
	if names := near(c, word); len(names) > 0 {
		return e.hint("did you mean %s? %s --help lists all", strings.Join(names, " or "), c.CommandPath())
	}
	return e.hint("%s --help", c.CommandPath())
}

// near are the commands of c that a word may have meant.
func near(c *cobra.Command, word string) []string {
	c.SuggestionsMinimumDistance = nearEnough
	return c.SuggestionsFor(word)
}

// noWords refuses words behind a command that takes none.
func noWords(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("%s takes no words, only flags: %q", c.CommandPath(), args[0]).hint("%s --help", c.CommandPath())
}

// checkWords gives every command that takes no words the errors above.
func checkWords(root *cobra.Command) {
	root.Long = folded(root.Long)
	for _, c := range root.Commands() {
		c.Long = folded(asCommands(c.Long))
		switch {
		case c.HasSubCommands():
			c.Args = subcommand
			if !c.Runnable() {
				c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			}
			checkWords(c)
		case c.Args == nil || c.GroupID != "tools" && c.Name() != "explain" && c.Name() != "help":
			c.Args = noWords
		}
	}
}

// folded breaks a help text into lines that any terminal shows whole.
func folded(text string) string {
	const readable = 80
	var out []string
	for _, l := range strings.Split(text, "\n") {
		out = append(out, report.Wrap(l, readable)...)
	}
	return strings.Join(out, "\n")
}

// badFlag explains a flag that cannot be used, and suggests one.
func badFlag(c *cobra.Command, err error) error {
	e := usage("%s", err)
	word, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	flags := &cobra.Command{}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if names := near(flags, strings.ReplaceAll(word, "_", "-")); unknown && len(names) > 0 {
		return e.hint("did you mean --%s? %s --help lists all", strings.Join(names, " or --"), c.CommandPath())
	}
	return e.hint("%s --help", c.CommandPath())
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND]", Short: "Show the help of a command", GroupID: "start", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return subcommand(c, rest)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		}}
}

// A word is the value of a tool's argument on the command line. The tool judges
// it; kind is what the help calls it.
type word struct{ text, kind string }

func (w *word) String() string     { return w.text }
func (w *word) Set(s string) error { w.text = s; return nil }
func (w *word) Type() string       { return w.kind }

// wordKinds are the names of kinds of arguments in the help. A bool needs no
// value.
var wordKinds = map[string]string{"integer": "number", "boolean": "bool"}

func newWord(kind, text string) *word {
	if name, ok := wordKinds[kind]; ok {
		return &word{text, name}
	}
	return &word{text, "text"}
}
