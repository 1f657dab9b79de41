package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pvelens/tools/report"
)

// prometheus writes an audit as a file for node_exporter's textfile collector:
// gauges, each with the profile's name.
func prometheus(_ *app, w io.Writer, r *report.Audit) error {
	var b strings.Builder
	b.WriteString(upMetric(1))
	s := r.Summary
	profile := label("profile", r.Profile)
	gauge := func(name, help string, values ...string) {
		if len(values) > 0 {
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		}
		for _, v := range values {
			b.WriteString(name + v + "\n")
		}
	}
	one := func(n int) string { return fmt.Sprintf("{%s} %d", profile, n) }
	complete := 0
	if r.Complete {
		complete = 1
	}
	gauge("pvelens_complete", "1 if everything that the audit needs was read.", one(complete))
	gauge("pvelens_problems", "Sources that could not be read.", one(len(r.Problems)))
	if at, err := time.Parse(time.RFC3339, r.CollectedAt); err == nil {
		gauge("pvelens_collected_timestamp_seconds", "When the audit was made.", fmt.Sprintf("{%s} %d", profile, at.Unix()))
	}
	gauge("pvelens_nodes", "Nodes looked at.", one(s.Nodes))
	gauge("pvelens_guests", "Guests looked at.", one(s.Guests))
	gauge("pvelens_storages", "Storages looked at.", one(s.Storages))
	severity := func(name report.Severity, n int) string {
		return fmt.Sprintf("{%s,%s} %d", profile, label("severity", string(name)), n)
	}
	gauge("pvelens_findings", "Findings by severity.", severity(report.Critical, s.Critical), severity(report.Warning, s.Warning), severity(report.Info, s.Info))
	gauge("pvelens_finding", "Findings by code and subject.", findingSeries(profile, r)...)
	_, err := io.WriteString(w, b.String())
	return err
}

func upMetric(up int) string {
	return fmt.Sprintf("# HELP pvelens_up 1 if the audit could be made.\n# TYPE pvelens_up gauge\npvelens_up %d\n", up)
}

// findingSeries counts the findings with the same labels, for a series may stand
// only once.
func findingSeries(profile string, r *report.Audit) []string {
	count := map[string]int{}
	for _, g := range r.Everything() {
		for _, f := range g.Findings {
			count[fmt.Sprintf("{%s,%s,%s,%s}", profile, label("code", f.Code), label("severity", string(f.Severity)), label("subject", f.Subject))]++
		}
	}
	var out []string
	for labels, n := range count {
		out = append(out, fmt.Sprintf("%s %d", labels, n))
	}
	slices.Sort(out)
	return out
}

func label(name, value string) string {
	return name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}
