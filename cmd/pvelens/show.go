package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"pvelens/tools"
	"pvelens/tools/report"
)

// show prints a report as people or as programs want it.
func (a *app) show(r report.Tabler) error {
	if !r.Head().Complete {
		a.code = exitIncomplete
	}
	if a.json {
		out, err := tools.Encode(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s\n", out)
		return err
	}
	if err := a.showTables(a.out, r.Tables()); err != nil {
		return err
	}
	return a.showHead(r.Head())
}

func (a *app) showTables(w io.Writer, tables []report.Table) error {
	for i, t := range tables {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := t.WriteWidth(w, a.width()); err != nil {
			return err
		}
	}
	return nil
}

// showHead prints how far an answer can be trusted.
func (a *app) showHead(h *report.Answer) error {
	var b strings.Builder
	if len(h.Problems) > 0 || !h.Complete {
		b.WriteString("\n")
	}
	switch {
	case !h.Complete:
		b.WriteString(a.paint(yellow, "This answer is incomplete.") + "\n")
	case len(h.Problems) > 0:
		b.WriteString("This answer is complete. Noticed on the way:\n")
	}
	a.writeProblems(&b, h.Problems)
	if h.Source != "" && h.CollectedAt != "" {
		fmt.Fprintf(&b, "\nsource: %s, as of %s\n", h.Source, h.CollectedAt)
	}
	for _, s := range h.Sources {
		fmt.Fprintf(&b, "read: %s %s exit %d in %d ms\n", s.Node, s.Form, s.Exit, s.Ms)
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

// writeProblems prints problems once per node and code: what was found by several
// ways is one cause. Hints stand below.
func (a *app) writeProblems(b *strings.Builder, ps []report.Problem) {
	for len(ps) > 0 {
		first, n := ps[0], 1
		for n < len(ps) && first.Node != "" && ps[n].Node == first.Node && ps[n].Code == first.Code {
			n++
		}
		var said, hints []string
		for _, p := range ps[:n] {
			said = add(said, strings.TrimPrefix(p.Message, p.Node+": "))
			hints = add(hints, p.Hint)
		}
		ps = ps[n:]
		text := "! "
		if first.Node != "" {
			text += first.Node + ": "
		}
		a.writeText(b, text+string(first.Code)+": "+strings.Join(said, "; "))
		for _, h := range hints {
			a.writeText(b, "  hint: "+asCommands(h))
		}
	}
}

// add appends text that is new.
func add(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func (a *app) writeText(b *strings.Builder, text string) {
	for _, l := range report.Wrap(text, a.width()) {
		b.WriteString(l + "\n")
	}
}

// asCommands names tools as the command line does, in a text that was written
// for both.
func asCommands(text string) string {
	text = strings.ReplaceAll(text, "detail=detailed", "--detail detailed")
	for _, t := range tools.All() {
		text = strings.ReplaceAll(text, t.Name, strings.ReplaceAll(t.Name, "_", "-"))
	}
	return text
}

// width is the terminal's width in columns; 0 where the output is no terminal.
func (a *app) width() int {
	f, ok := a.out.(*os.File)
	if !ok {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

type colour string

const (
	bold   colour = "1"
	red    colour = "31"
	yellow colour = "33"
)

// paint colours text where a terminal shows it and nobody asked not to.
func (a *app) paint(c colour, s string) string {
	if a.noColor || a.getenv("NO_COLOR") != "" || !terminal(a.out) {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
