package report

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"web-proxy":                      "web-proxy",
		"Größe – naïve 日本":               "Größe – naïve 日本",
		"a\x1b[31mred\x1b[0m":            "ared",
		"\x1b]0;title\x07text":           "text",
		"\x1b]8;;http://x\x1b\\link":     "link",
		"\u009b31mx":                     "x",
		"a\u202egnp.exe":                 "agnp.exe",
		"a\u200bb\u2060c\ufeffd":         "abcd",
		"a\nb\tc":                        "a b c",
		"a\r\x00\x07b":                   "ab",
		"bad\xffbyte":                    "badbyte",
		"tag\U000e0041\U000e007f":        "tag",
		"\x1b":                           "",
		"\x1b[":                          "",
		"  x  ":                          "x",
		"a\u2028b":                       "ab",
		"variation\ufe0f":                "variation",
		"\x1bPq secret\x1b\\after":       "after",
		"unterminated \x1b]0;rest\nnext": "unterminated  next",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CleanNote("a\nb"); got != "a\nb" {
		t.Errorf("CleanNote keeps lines: %q", got)
	}
	if got := Clean(strings.Repeat("ä", 400)); len(got) > MaxText || !strings.HasSuffix(got, "…") || !utf8.ValidString(got) {
		t.Errorf("a long text: %d bytes", len(got))
	}
}

func TestScrub(t *testing.T) {
	type row struct {
		Name  string
		Words []string
		Count map[string]int
		Next  *row
		Any   any
		own   string
	}
	r := &row{Name: "a\u202eb", Words: []string{"ok", "\x1b[2Jx\ny"}, Count: map[string]int{"k\u200b": 1}, Next: &row{Name: " z\x00"}, own: "\x1b"}
	Scrub(r)
	want := &row{Name: "ab", Words: []string{"ok", "x\ny"}, Count: map[string]int{"k": 1}, Next: &row{Name: " z"}, own: "\x1b"}
	if !reflect.DeepEqual(want, r) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

// FuzzClean: what comes out is valid, short, holds nothing hidden, and stays as
// it is when cleaned again.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31m", "\u202e", "\xff\xfe", strings.Repeat("日", 200), "\x1b]8;;", "a\nb", "…", strings.Repeat("a", 301)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, clean := range map[string]func(string) string{"Clean": Clean, "CleanNote": CleanNote} {
			got := clean(s)
			if !utf8.ValidString(got) || len(got) > MaxNote || name == "Clean" && len(got) > MaxText {
				t.Fatalf("%s(%q): %d bytes, valid %v", name, s, len(got), utf8.ValidString(got))
			}
			for _, r := range got {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
					t.Fatalf("%s(%q) holds %U", name, s, r)
				}
			}
			if again := clean(got); again != got {
				t.Fatalf("%s is not stable: %q, then %q", name, got, again)
			}
		}
	})
}

func TestUnits(t *testing.T) {
	n := func(x int64) *int64 { return &x }
	for _, c := range []struct{ got, want string }{
		{Bytes(nil), ""}, {Bytes(n(0)), "0 B"}, {Bytes(n(1023)), "1023 B"}, {Bytes(n(1024)), "1.0 KiB"}, {Bytes(n(1 << 40)), "1.0 TiB"}, {Bytes(n(1 << 62)), "4096.0 PiB"},
		{Seconds(nil), ""}, {Seconds(n(59)), "59s"}, {Seconds(n(61)), "1m"}, {Seconds(n(3700)), "1h01m"}, {Seconds(n(200000)), "2d"},
		{Percent(nil), ""}, {Percent(Ptr(0.125)), "12.5%"}, {YesNo(nil), "unknown"}, {YesNo(Ptr(false)), "no"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCutNeverLosesCount(t *testing.T) {
	all := []int{1, 2, 3, 4, 5}
	for _, c := range []struct {
		offset, limit, returned int
		next                    int
		truncated               bool
	}{{0, 5, 5, 0, false}, {0, 2, 2, 2, true}, {4, 2, 1, 0, true}, {9, 2, 0, 0, true}, {2, 3, 3, 0, true}} {
		out, p := Cut(all, c.offset, c.limit)
		next := 0
		if p.Next != nil {
			next = *p.Next
		}
		if len(out) != c.returned || p.Returned != c.returned || p.Total != 5 || next != c.next || p.Truncated != c.truncated || out == nil {
			t.Errorf("Cut(%d, %d): %v %+v", c.offset, c.limit, out, p)
		}
	}
}
