package main

import (
	"bytes"
	"strings"
	"testing"

	"pvelens/allowlist"
	"pvelens/fixtures"
)

func explainLine(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	code = run(t.Context(), append([]string{"allowlist", "explain"}, args...), stdio{out: &out, err: &out}, func(string) string { return "" })
	return code, out.String()
}

func TestHostileLinesAreRefusedUnsplit(t *testing.T) {
	lines := fixtures.Hostile()
	if len(lines) < 383 {
		t.Fatalf("only %d hostile lines", len(lines))
	}
	for _, line := range lines {
		code, text := explainLine(t, "--line="+line)
		if code != exitRefused {
			t.Errorf("%.80q: exit %d, want %d: %s", line, code, exitRefused, text)
		}
		if len(line) > 20 && strings.Contains(text, line) {
			t.Errorf("%.80q: the refusal repeats the words", line)
		}
	}
}

func TestPermittedLinesNearThem(t *testing.T) {
	for _, near := range fixtures.PermittedNear() {
		if code, text := explainLine(t, "--line="+near.Text); code != exitOK {
			t.Errorf("%q: exit %d: %s", near.Text, code, text)
		}
	}
}

// TestHostileLinesSplitAreRefusedOrOurs splits each line as a shell would, and
// sends the words: they are refused, or they are a permitted argv, and then what
// is sent is our own rendering of it.
func TestHostileLinesSplitAreRefusedOrOurs(t *testing.T) {
	for _, line := range fixtures.Hostile() {
		words := shellWords(line)
		for _, role := range []allowlist.Role{allowlist.PVE, allowlist.Docker} {
			c, err := allowlist.Check(role, words...)
			if err != nil {
				continue
			}
			again, err := allowlist.CheckLine(role, c.Line())
			if err != nil || again.ID() != c.ID() || c.Line() == line {
				t.Errorf("%.80q yields %q, sent as %q", line, words, c.Line())
			}
		}
	}
}

// shellWords splits at blanks outside quotes and takes quotes and backslashes
// away, as sh does before it expands anything.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	open, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '\\':
			escaped, open = true, true
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case strings.ContainsRune(" \t\n", r):
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}
