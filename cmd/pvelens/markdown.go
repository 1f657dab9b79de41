package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"pvelens/tools/report"
)

// markdown writes an audit as a report to hand over: a summary, what could not
// be read, then a section a subject.
func markdown(_ *app, w io.Writer, r *report.Audit) error {
	var b strings.Builder
	s := r.Summary
	fmt.Fprintf(&b, "# Proxmox VE audit: profile %s\n\nMade %s by pvelens %s.", plain(r.Profile), r.CollectedAt, plain(version()))
	if r.JudgedAt != "" {
		fmt.Fprintf(&b, " Ages are judged as of %s.", r.JudgedAt)
	}
	fmt.Fprintf(&b, "\n\n%s\n\n| critical | warning | info | nodes | guests | storages |\n|---:|---:|---:|---:|---:|---:|\n| %d | %d | %d | %d | %d | %d |\n",
		plain(s.Text), s.Critical, s.Warning, s.Info, s.Nodes, s.Guests, s.Storages)
	if !r.Complete || len(r.Problems) > 0 {
		b.WriteString("\n## What could not be read\n\n")
		if !r.Complete {
			b.WriteString("This audit is incomplete: where a source is missing, no finding does not mean that all is well.\n\n")
		}
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "- %s %s: %s\n", p.Code, plain(cmp.Or(p.Node, "-")), plain(p.Message))
		}
	}
	for _, g := range r.Everything() {
		title := plain(g.Subject)
		if g.Name != "" {
			title += " " + plain(g.Name)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| severity | code | what | evidence | limit | what to do |\n|---|---|---|---|---|---|\n", title)
		for _, f := range g.Findings {
			var told []string
			for _, e := range f.Evidence {
				told = append(told, strings.TrimSpace(plain(e.Name+": "+e.Value)+" "+e.Unit))
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.Severity, plain(f.Code), plain(f.Message), strings.Join(told, "<br>"), plain(f.Threshold), plain(f.Fix))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// plain keeps a text from being read as Markdown: names in it are written by
// people who use the guests.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r':
			r = ' '
		case strings.ContainsRune("\\`*_{}[]<>|#!~&", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
