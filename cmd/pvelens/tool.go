package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pvelens/tools"
)

// toolCommand makes a command of a tool: its name with dashes, its arguments as
// flags, and the ones that may stand alone as words.
func (a *app) toolCommand(t tools.Tool) *cobra.Command {
	var pos []tools.Param
	use := strings.ReplaceAll(t.Name, "_", "-")
	for _, p := range t.Params {
		if p.Pos {
			pos = append(pos, p)
			if p.Required {
				use += " " + strings.ToUpper(p.Name)
			} else {
				use += " [" + strings.ToUpper(p.Name) + "]"
			}
		}
	}
	c := &cobra.Command{Use: use, Short: t.Title, Long: t.Description, GroupID: "tools"}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > len(pos) {
			return usage("%s takes at most %d words, not %d", c.Name(), len(pos), len(args)).hint("pvelens %s --help", c.Name())
		}
		return nil
	}
	values := map[string]*word{}
	for _, p := range t.Params {
		if p.Name == "profile" || p.Name == "detail" {
			continue
		}
		help := p.Help
		if p.Enum != nil {
			help += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		v := newWord(p.Type, p.Default)
		c.Flags().Var(v, p.Flag(), help)
		values[p.Name] = v
		if p.Type == "boolean" {
			c.Flags().Lookup(p.Flag()).NoOptDefVal = "true"
		}
		_ = c.RegisterFlagCompletionFunc(p.Flag(), a.completeParam(p))
	}
	if len(pos) > 0 {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= len(pos) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeParam(pos[len(args)])(c, args, word)
		}
	}
	format := a.formats(t, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		raw := map[string]json.RawMessage{}
		for _, p := range t.Params {
			if v := values[p.Name]; v != nil && c.Flags().Changed(p.Flag()) {
				raw[p.Name] = p.Raw(v.text)
			}
		}
		for i, v := range args {
			if _, twice := raw[pos[i].Name]; twice {
				return usage("%s is given twice", pos[i].Name)
			}
			raw[pos[i].Name] = pos[i].Raw(v)
		}
		if a.profile != "" {
			raw["profile"] = quoted(a.profile)
		}
		if a.detail != "" {
			raw["detail"] = quoted(a.detail)
		}
		return a.call(c.Context(), t, raw, format)
	}
	return c
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func (a *app) call(ctx context.Context, t tools.Tool, raw map[string]json.RawMessage, format func() string) error {
	env, err := a.env()
	if err != nil {
		return err
	}
	args, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	r, err := t.Call(ctx, env, args)
	a.clearProgress()
	if err != nil {
		return a.failAs(format(), err)
	}
	if f := format(); f != "" && f != "text" {
		return a.export(r, f)
	}
	return a.show(r)
}

func (a *app) completeProfile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.profileNames(), cobra.ShellCompDirectiveNoFileComp
}

// completeParam offers an argument's values. For a guest, node or project it
// asks the profile's inventory, within the time a shell waits.
func (a *app) completeParam(p tools.Param) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		if p.Enum != nil {
			return p.Enum, cobra.ShellCompDirectiveNoFileComp
		}
		if p.Name != "guest" && p.Name != "node" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
		defer cancel()
		env, err := a.env()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		args, _ := json.Marshal(map[string]string{"profile": a.profile})
		for _, t := range tools.All() {
			if t.Name == "list_guests" {
				_, _ = t.Call(ctx, env, args)
			}
		}
		return slices.DeleteFunc(env.Completions(p.Name, word), strange), cobra.ShellCompDirectiveNoFileComp
	}
}

// strange reports whether a name holds a byte that means something to a shell. A
// node or a guest can call itself anything; such a name is not offered, whatever a
// shell's completion code would do with it.
func strange(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-._ ", r)
	})
}

// progress writes one line on stderr, where a terminal shows it.
func (a *app) progress(_ context.Context, done, total int, what string) {
	if !terminal(a.err) || a.json {
		return
	}
	fmt.Fprintf(a.err, "\r\x1b[K%s/%s %s", strconv.Itoa(done), strconv.Itoa(total), what)
}

func (a *app) clearProgress() {
	if terminal(a.err) && !a.json {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
}
