package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pvelens/allowlist"
	"pvelens/tools"
	"pvelens/tools/report"
)

// withHash makes the install script check that the gate holds this table.
func withHash(script string) string {
	return strings.Replace(script, "ALLOWLIST_SHA256=''", "ALLOWLIST_SHA256='"+allowlist.Hash()+"'", 1)
}

// docsCommand rewrites the parts of the documentation that are printed from
// code, or checks that they are up to date.
func (a *app) docsCommand() *cobra.Command {
	check, dir := false, "."
	c := &cobra.Command{Use: "docs", Short: "Rewrite the generated parts of the documentation", Hidden: true, Args: cobra.NoArgs}
	c.Flags().BoolVar(&check, "check", false, "only say whether they are up to date")
	c.Flags().StringVar(&dir, "dir", dir, "the repository")
	c.RunE = func(*cobra.Command, []string) error {
		var stale []string
		for name, blocks := range generated() {
			path := filepath.Join(dir, filepath.FromSlash(name))
			old, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text, err := replaceBlocks(string(old), blocks)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if text == string(old) {
				continue
			}
			stale = append(stale, name)
			if !check {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					return err
				}
			}
		}
		if check && stale != nil {
			return fmt.Errorf("not up to date: %s; run: go run ./cmd/pvelens docs", strings.Join(stale, ", "))
		}
		return nil
	}
	return c
}

// generated are the blocks of each file, by name.
func generated() map[string]map[string]string {
	return map[string]map[string]string{
		"README.md":         {"tools": toolsMarkdown()},
		"SECURITY.md":       {"allowlist": allowlistMarkdown(), "slots": slotsMarkdown()},
		"tools/FINDINGS.md": {"findings": findingsMarkdown(), "tools": referenceMarkdown()},
	}
}

// replaceBlocks writes each block between its two marks.
func replaceBlocks(text string, blocks map[string]string) (string, error) {
	for name, block := range blocks {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->"
		i := strings.Index(text, begin)
		j := strings.Index(text, end)
		if i < 0 || j < i {
			return "", fmt.Errorf("no marks %s … %s", strings.TrimSpace(begin), end)
		}
		text = text[:i+len(begin)] + block + text[j:]
	}
	return text, nil
}

func toolsMarkdown() string {
	var b strings.Builder
	b.WriteString("| tool | answers |\n|---|---|\n")
	for _, t := range tools.All() {
		first, _, _ := strings.Cut(t.Description, ". ")
		fmt.Fprintf(&b, "| `%s` | %s |\n", t.Name, strings.TrimSuffix(first, "."))
	}
	return b.String()
}

func referenceMarkdown() string {
	var b strings.Builder
	for _, t := range tools.All() {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", t.Name, t.Description)
		b.WriteString("| argument | values | meaning |\n|---|---|---|\n")
		for _, p := range t.Params {
			fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", p.Name, required(p), values(p), p.Help)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func required(p tools.Param) string {
	if p.Required {
		return " (required)"
	}
	return ""
}

func values(p tools.Param) string {
	s := p.Type
	if p.Enum != nil {
		s = strings.Join(p.Enum, ", ")
	}
	if p.Type == "integer" && p.Min != nil && p.Max != nil {
		s = fmt.Sprintf("%d to %d", *p.Min, *p.Max)
	}
	if p.Default != "" {
		s += "; default " + p.Default
	}
	return s
}

func slotsMarkdown() string {
	var b strings.Builder
	b.WriteString("| slot | admits |\n|---|---|\n")
	for _, s := range allowlist.Slots() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s[0], s[1])
	}
	return b.String()
}

func findingsMarkdown() string {
	var b strings.Builder
	b.WriteString("| code | severity | limits | why | what to do |\n|---|---|---|---|---|\n")
	for _, r := range report.Catalogue {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Code, r.Severity, limits(r), r.Why, r.Fix)
	}
	return b.String()
}

func limits(r report.Rule) string {
	var parts []string
	for _, l := range []struct {
		name  string
		limit float64
	}{{"info", r.Info}, {"warning", r.Warning}, {"critical", r.Critical}} {
		if l.limit != 0 {
			parts = append(parts, fmt.Sprintf("%s %s %s", l.name, r.Compare, report.Number(l.limit)))
		}
	}
	if parts == nil {
		return ""
	}
	return strings.Join(parts, ", ") + " " + r.Unit
}
