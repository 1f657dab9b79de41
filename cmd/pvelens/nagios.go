package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"pvelens/tools"
	"pvelens/tools/report"
)

// The states of a monitoring plugin, which are also its exit statuses.
const (
	nagiosOK = iota
	nagiosWarning
	nagiosCritical
	nagiosUnknown
)

var nagiosWords = []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}

// Monitoring programs cut long outputs.
const nagiosLines = 100

// nagios writes an audit as the plugin interface of Nagios, Icinga and Checkmk
// wants it: one line with performance data, then the findings. An answer that is
// incomplete is at least a warning.
func nagios(a *app, w io.Writer, r *report.Audit) error {
	s := r.Summary
	state := nagiosOK
	switch {
	case s.Critical > 0:
		state = nagiosCritical
	case s.Warning > 0 || !r.Complete:
		state = nagiosWarning
	}
	var b strings.Builder
	fmt.Fprintf(&b, "PVELENS %s - %s | critical=%d;;0;0 warning=%d;0;;0 info=%d;;;0 subjects=%d;;;0 nodes=%d;;;0 guests=%d;;;0 storages=%d;;;0 problems=%d;0;;0\n",
		nagiosWords[state], pipeless(s.Text), s.Critical, s.Warning, s.Info, s.Subjects, s.Nodes, s.Guests, s.Storages, len(r.Problems))
	lines := 0
	for _, p := range r.Problems {
		lines++
		fmt.Fprintf(&b, "problem: %s %s\n", p.Code, pipeless(strings.TrimPrefix(p.Node+": "+p.Message, ": ")))
	}
	for _, g := range r.Everything() {
		for _, f := range g.Findings {
			if lines++; lines <= nagiosLines {
				fmt.Fprintf(&b, "%s: %s %s: %s\n", f.Severity, f.Code, pipeless(g.Subject), pipeless(f.Message))
			}
		}
	}
	if lines > nagiosLines {
		fmt.Fprintf(&b, "and %d more\n", lines-nagiosLines)
	}
	_, err := io.WriteString(w, b.String())
	a.code = state
	return err
}

// pipeless keeps a text from being taken for performance data.
func pipeless(s string) string {
	return strings.NewReplacer("|", "/", "\n", " ", "\r", " ").Replace(s)
}

// unknown is how a monitoring program is told that there is no answer.
func (a *app) unknown(err error) int {
	e := tools.AsError(err)
	message := e.Error()
	if u := (*usageError)(nil); errors.As(err, &u) {
		message = u.msg
	}
	fmt.Fprintf(a.out, "PVELENS UNKNOWN - %s\n", pipeless(message))
	fmt.Fprintf(a.err, "pvelens: %s\n", message)
	return nagiosUnknown
}
