package main

import (
	"fmt"
	"strings"

	"pvelens/allowlist"
)

// allowlistText prints the table for people: a form on one line, its words
// below, where a long template or pattern is cut.
func allowlistText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Every command that pvelens can run. sha256 %s\n", allowlist.Hash())
	role := allowlist.Role("")
	for _, f := range allowlist.Forms() {
		if f.Role != role {
			role = f.Role
			fmt.Fprintf(&b, "\nrole %s\n", role)
		}
		fmt.Fprintf(&b, "  %-20s rights %-8s effect %-9s %3d s  %6d KiB  exits %s\n      %s\n      reveals %s; for: %s\n",
			f.ID, f.Rights, f.Effect, f.Limit, f.Cap>>10, f.Exits(), shortArgv(f.Argv), f.Reveals, f.Why)
	}
	b.WriteString("\nslots\n")
	for _, s := range allowlist.Slots() {
		fmt.Fprintf(&b, "  %-12s %s\n", s[0], s[1])
	}
	b.WriteString("\n--json prints every word in full.\n")
	return b.String()
}

func shortArgv(argv []string) string {
	const most = 60
	words := make([]string, len(argv))
	for i, w := range argv {
		if len(w) > most {
			w = w[:most] + "…"
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}

// allowlistMarkdown prints the table for documentation.
func allowlistMarkdown() string {
	var b strings.Builder
	b.WriteString("| form | role | rights | effect | command | can reveal |\n|---|---|---|---|---|---|\n")
	for _, f := range allowlist.Forms() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` | %s |\n", f.ID, f.Role, f.Rights, f.Effect, strings.ReplaceAll(shortArgv(f.Argv), "|", `\|`), f.Reveals)
	}
	return b.String()
}
