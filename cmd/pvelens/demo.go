package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pvelens/tools"
	"pvelens/tools/report"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Show a tour on the embedded cluster: no configuration, no Proxmox", GroupID: "start", Args: cobra.NoArgs,
		Long: "Starts the embedded cluster (SSH servers on loopback that replay recordings), asks it through the same transport, allowlist and audit code as a real one, and shows what pvelens answers. `--profile demo` works with every command.",
		RunE: func(c *cobra.Command, _ []string) error { return a.tour(c.Context()) }}
}

// tour asks the demo cluster a few questions and checks the answers against
// what was recorded.
func (a *app) tour(ctx context.Context) error {
	d, err := a.demoBackend()
	if err != nil {
		return err
	}
	env := &tools.Env{Open: func(string) (*tools.Backend, error) { return d.Backend, nil }, Progress: a.progress}
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%s", a.paint(bold, "pvelens demo: cluster heimlabor, replayed by SSH servers on loopback"))
	say("Three nodes: pve1 answers, pve2 is off, pve3 says nothing. The clock stands at %s.", report.At(d.cluster.Clock.Unix()))
	answers := map[string]report.Tabler{}
	for _, q := range []struct{ tool, args string }{
		{"list_nodes", `{}`}, {"list_guests", `{}`}, {"get_guest_config", `{"guest":"102"}`},
	} {
		r, err := ask(ctx, env, q.tool, q.args)
		if err != nil {
			return err
		}
		answers[q.tool] = r
		command := "pvelens " + strings.ReplaceAll(q.tool, "_", "-") + " --profile demo"
		if q.tool == "get_guest_config" {
			command = "pvelens get-guest-config 102 --profile demo"
		}
		say("\n%s", a.paint(bold, "$ "+command))
		if err := a.showTables(&b, r.Tables()); err != nil {
			return err
		}
	}
	say("\n%s", a.paint(bold, "Why pve2 and pve3 are missing"))
	var problems strings.Builder
	a.writeProblems(&problems, answers["list_nodes"].Head().Problems)
	b.WriteString(problems.String())
	say("An answer says what it could not read: complete is %v.", answers["list_guests"].Head().Complete)
	say("\n%s", a.paint(bold, "The audit log's last lines (in memory here; a file for a real cluster)"))
	lines := d.audit.Lines()
	for _, l := range lines[max(0, len(lines)-4):] {
		out, err := tools.Encode(l)
		if err != nil {
			return err
		}
		say("%s", out)
	}
	say("\n%s", a.paint(bold, "Next"))
	say("  pvelens list-guests --profile demo --status running    the same for every other question: pvelens --help")
	say("  pvelens allowlist                                      every command that pvelens can run")
	say("  pvelens init --node pve1 && pvelens doctor             your own cluster")
	if _, err := a.out.Write(b.Bytes()); err != nil {
		return err
	}
	return a.tourTrue(answers)
}

func ask(ctx context.Context, env *tools.Env, name, args string) (report.Tabler, error) {
	for _, t := range tools.All() {
		if t.Name == name {
			return t.Call(ctx, env, json.RawMessage(args))
		}
	}
	return nil, fmt.Errorf("no tool %s", name)
}

// tourTrue holds the answers against the recorded cluster.
func (a *app) tourTrue(answers map[string]report.Tabler) error {
	guests, ok := answers["list_guests"].(*report.GuestList)
	if !ok || guests.Total != 17 || guests.Complete {
		return errors.New("the demo's guests are not the recorded ones")
	}
	status := map[string]int{}
	for _, g := range guests.Items {
		status[g.Status]++
	}
	nodes, ok := answers["list_nodes"].(*report.NodeList)
	cfg, ok2 := answers["get_guest_config"].(*report.GuestConfig)
	if !ok || !ok2 || nodes.Total != 3 || status[report.Running] != 3 || status[report.Unknown] != 2 || cfg.Name != "immich" {
		return errors.New("the demo's answers are not the recorded ones")
	}
	return nil
}
