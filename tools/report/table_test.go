package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableWidth(t *testing.T) {
	table := Table{
		Title:   "Guests",
		Columns: []string{">VMID", "name", "", "why"},
		Rows: [][]string{
			{"101", "web", "ok", ""},
			{"123456789", "a-name-of-sixty-characters-which-is-more-than-a-line-can-hold", "", "the newest archive is older than its job's schedule promises"},
			{"103", "日本語", "  in", "e\u0301 \x1b[2Jx\ny"},
		},
		Notes: []string{"3 guests, of which one has a name that is longer than anybody needs"},
	}
	for _, tt := range []struct {
		width int
		want  string
	}{
		{0, `Guests
     VMID  NAME                                                                 WHY
      101  web                                                            ok    -
123456789  a-name-of-sixty-characters-which-is-more-than-a-line-can-hold  -     the newest archive is older than its job's schedule promises
      103  日本語                                                           in  é x y
3 guests, of which one has a name that is longer than anybody needs
`},
		{60, `Guests
     VMID  NAME                         WHY
      101  web                    ok    -
123456789  a-name-of-…e-can-hold  -     the newest archive
                                        is older than its
                                        job's schedule
                                        promises
      103  日本語                   in  é x y
3 guests, of which one has a name that is longer than
anybody needs
`},
	} {
		var b strings.Builder
		if err := table.WriteWidth(&b, tt.width); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, b.String()); d != "" {
			t.Errorf("width %d (-want +got):\n%s", tt.width, d)
		}
	}
}

// FuzzWrap: no line is wider than asked, and no word is lost but its middle.
func FuzzWrap(f *testing.F) {
	for _, s := range []string{"", " ", "a b c", "  indented text", strings.Repeat("x", 60), "日本語 日本語 日本語", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"} {
		f.Add(s, 12)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		s, width = Clean(s), 8+max(width, 0)%100
		lines := Wrap(s, width)
		for _, l := range lines {
			if columns(l) > width {
				t.Errorf("Wrap(%q, %d): line %q has %d columns", s, width, l, columns(l))
			}
		}
		if have, want := len(strings.Fields(strings.Join(lines, " "))), len(strings.Fields(s)); have != want {
			t.Errorf("Wrap(%q, %d): %d words, want %d", s, width, have, want)
		}
	})
}

// TestRoom: a table that is too wide first loses columns that say nothing, then
// breaks the names of its numbers.
func TestRoom(t *testing.T) {
	table := Table{Columns: []string{"name", "tags", ">last run failed", "why"}, Rows: [][]string{{"one", "", "3", "a reason"}, {"two", "", "12.5 GiB", "in short"}}}
	var b strings.Builder
	if err := table.WriteWidth(&b, 24); err != nil {
		t.Fatal(err)
	}
	want := `NAME  LAST RUN  WHY
        FAILED
one          3  a reason
two   12.5 GiB  in short
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
