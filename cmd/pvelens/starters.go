package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pvelens/allowlist"
	"pvelens/profiles"
	"pvelens/tools"
	"pvelens/tools/report"
	"pvelens/transport"
)

// starters are the commands that are no tools.
func (a *app) starters() []*cobra.Command {
	return []*cobra.Command{a.demoCommand(), a.initCommand(), a.doctorCommand(), a.serveCommand(), a.allowlistCommand(), a.auditCommand(), a.gateCommand(), a.versionCommand(), a.docsCommand()}
}

// release is set when a release is built.
var release = ""

func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version and the allowlist's hash", GroupID: "trust", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		if a.json {
			return a.printJSON(map[string]string{"version": version(), "allowlist_sha256": allowlist.Hash()})
		}
		_, err := fmt.Fprintf(a.out, "pvelens %s\nallowlist sha256 %s\n", version(), allowlist.Hash())
		return err
	}}
}

func (a *app) printJSON(v any) error {
	out, err := tools.Encode(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", out)
	return err
}

func (a *app) initCommand() *cobra.Command {
	var nodes, hosts []string
	var user string
	c := &cobra.Command{Use: "init --node HOST [--node HOST]…", Short: "Write a first profiles.toml", GroupID: "start", Args: cobra.NoArgs,
		Long: "Writes a first profiles.toml with one profile, homelab. A node is what you type after ssh; one node is enough for a cluster's inventory. An existing file is never changed."}
	c.Flags().StringArrayVar(&nodes, "node", nil, "SSH destination of a Proxmox node")
	c.Flags().StringArrayVar(&hosts, "docker-host", nil, "SSH destination of a host that runs Docker")
	c.Flags().StringVar(&user, "user", "root", "SSH user")
	c.RunE = func(*cobra.Command, []string) error {
		if len(nodes) == 0 && len(hosts) == 0 {
			return usage("init needs at least one --node").hint("pvelens init --node pve1")
		}
		path := profiles.Path(a.getenv, home(a.getenv))
		if err := profiles.WriteFirst(path, &profiles.Profile{Name: "homelab", Nodes: nodes, DockerHosts: hosts, SSHUser: user}); err != nil {
			return badWord(err)
		}
		_, err := fmt.Fprintf(a.out, "wrote %s\nnext: pvelens doctor\n", path)
		return err
	}
	return c
}

// badWord turns what is wrong with a line of a file that was not written into what
// is wrong with the command line.
func badWord(err error) error {
	var e *profiles.Error
	if !errors.As(err, &e) {
		return err
	}
	if _, what, ok := strings.Cut(e.Message, ": profiles.homelab."); ok {
		return usage("%s", what).hint("pvelens init --help")
	}
	return err
}

func (a *app) allowlistCommand() *cobra.Command {
	markdown := false
	c := &cobra.Command{Use: "allowlist", Short: "Print every command that pvelens can run", GroupID: "trust", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		switch {
		case a.json:
			return a.printJSON(map[string]any{"sha256": allowlist.Hash(), "forms": tools.AllowlistRows()})
		case markdown:
			_, err := fmt.Fprint(a.out, allowlistMarkdown())
			return err
		}
		_, err := fmt.Fprint(a.out, allowlistText())
		return err
	}}
	c.Flags().BoolVar(&markdown, "markdown", false, "print Markdown")
	c.AddCommand(a.explainCommand())
	return c
}

func (a *app) explainCommand() *cobra.Command {
	line, role := "", ""
	c := &cobra.Command{Use: "explain -- ARGV… | explain --line STRING", Short: "Say which form permits a command, or why none does", Args: cobra.ArbitraryArgs,
		Long: "Says which form permits the words after --, or the string that --line gives as SSH would send it; or the class of its refusal, with exit status 3. Nothing is run."}
	c.Flags().StringVar(&line, "line", "", "one string, exactly as a gate would receive it")
	c.Flags().StringVar(&role, "role", "", "pve or docker (default: whichever permits it)")
	c.RunE = func(c *cobra.Command, words []string) error {
		asLine := c.Flags().Changed("line")
		if asLine && len(words) > 0 {
			return usage("give either words or --line")
		}
		roles := []allowlist.Role{allowlist.PVE, allowlist.Docker}
		switch role {
		case "":
		case string(allowlist.PVE), string(allowlist.Docker):
			roles = []allowlist.Role{allowlist.Role(role)}
		default:
			return usage("--role must be pve or docker")
		}
		cmd, err := explain(roles, asLine, line, words)
		if err != nil {
			return err
		}
		f := cmd.Form()
		if a.json {
			return a.printJSON(map[string]any{"permitted": true, "form": f.ID, "role": f.Role, "rights": f.Rights, "effect": f.Effect, "line": cmd.Line(), "sent": cmd.Wire(allowlist.AsIs)})
		}
		_, err = fmt.Fprintf(a.out, "permitted by form %s (role %s, rights %s, effect %s)\nreveals: %s\nfor: %s\nsent as: %s\n", f.ID, f.Role, f.Rights, f.Effect, f.Reveals, f.Why, cmd.Wire(allowlist.AsIs))
		return err
	}
	return c
}

// explain tries the roles in turn and returns the most telling refusal.
func explain(roles []allowlist.Role, asLine bool, line string, words []string) (cmd allowlist.Command, err error) {
	var first error
	for _, r := range roles {
		if asLine {
			cmd, err = allowlist.CheckLine(r, line)
		} else {
			cmd, err = allowlist.Check(r, words...)
		}
		if err == nil {
			return cmd, nil
		}
		if refusal, ok := err.(*allowlist.Refusal); first == nil || ok && refusal.Class == allowlist.BadSlot {
			first = err
		}
	}
	return cmd, first
}

func (a *app) auditCommand() *cobra.Command {
	count := 20
	c := &cobra.Command{Use: "audit", Short: "Show the audit log", GroupID: "trust",
		Long: "Shows the last lines of the audit log: every decision and every attempt, without output or values. --json prints the lines as they are in the file."}
	c.Flags().IntVar(&count, "lines", count, "how many lines to show")
	c.RunE = func(*cobra.Command, []string) error { return a.showAudit(max(count, 0)) }
	head := ""
	v := &cobra.Command{Use: "verify", Short: "Check the audit log's hash chain", Args: cobra.NoArgs,
		Long: "Checks that no line inside the log was changed. That its end was cut off, or the whole log written anew, shows only against a head that was noted elsewhere: serve prints one on stderr at start, and --head checks it."}
	v.Flags().StringVar(&head, "head", "", "a hash noted earlier that the chain must contain")
	v.RunE = func(*cobra.Command, []string) error { return a.verifyAudit(head) }
	c.AddCommand(v)
	return c
}

// showAudit prints the log's last lines, of an older file too where the newest
// has too few.
func (a *app) showAudit(count int) error {
	files, err := a.auditFiles()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		_, err = fmt.Fprintf(a.out, "no audit log yet: %s\n", a.auditPath())
		return err
	}
	var lines []string
	for i := len(files) - 1; i >= 0 && len(lines) < count; i-- {
		b, err := os.ReadFile(files[i])
		if err != nil {
			return err
		}
		lines = append(strings.Split(strings.TrimRight(string(b), "\n"), "\n"), lines...)
	}
	lines = lines[max(0, len(lines)-count):]
	if a.json {
		_, err = fmt.Fprintln(a.out, strings.Join(lines, "\n"))
		return err
	}
	return auditTable(lines).WriteWidth(a.out, a.width())
}

// auditTable is what people see of audit lines. A line that is none, such as a
// torn one, is shown as that.
func auditTable(lines []string) report.Table {
	t := report.Table{Columns: []string{"at", ">pid", "event", "host", "form", ">exit", ">ms", ">bytes", "note"}}
	for _, text := range lines {
		var l transport.AuditLine
		if json.Unmarshal([]byte(text), &l) != nil {
			t.Rows = append(t.Rows, []string{"", "", "no line of the log"})
			continue
		}
		note := string(l.Code)
		switch l.Event {
		case "start":
			note = "pvelens " + l.Version + ", allowlist " + l.Table[:min(12, len(l.Table))]
		case "refused":
			note = strings.TrimRight(l.Class+" "+l.Slot, " ")
		}
		t.Rows = append(t.Rows, []string{l.At.Format(time.RFC3339), strconv.Itoa(l.PID), l.Event, l.Node, l.Form, number(l.Exit), number(l.MS), number(l.Bytes), note})
	}
	return t
}

func number[N int | int64](n *N) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}

// auditFiles are the log's files, the oldest first.
func (a *app) auditFiles() ([]string, error) {
	path := a.auditPath()
	old, err := filepath.Glob(path + ".*")
	if err != nil {
		return nil, err
	}
	age := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(name, path+"."))
		if err != nil {
			return -1
		}
		return n
	}
	old = slices.DeleteFunc(old, func(name string) bool { return age(name) < 0 })
	slices.SortFunc(old, func(x, y string) int { return age(y) - age(x) })
	if _, err := os.Stat(path); err == nil {
		old = append(old, path)
	}
	return old, nil
}

func (a *app) verifyAudit(head string) error {
	files, err := a.auditFiles()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return &profiles.Error{Code: "NOT_FOUND", Message: "no audit log: " + a.auditPath(), Hint: "it begins with the first command that runs"}
	}
	var readers []io.Reader
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		readers = append(readers, f)
	}
	chain, err := transport.Verify(io.MultiReader(readers...), head)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"ok": true, "lines": chain.Lines, "recovered": chain.Recovered, "head": chain.Head})
	}
	_, err = fmt.Fprintf(a.out, "ok: %d lines, %d torn lines recovered, head %s\n", chain.Lines, chain.Recovered, chain.Head)
	return err
}
