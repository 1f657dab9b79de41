package parse

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiles(t *testing.T) {
	paths := []string{"/a", "/b", "/c"}
	tests := []struct {
		name, in string
		want     map[string]string
		err      string
	}{
		{"all three", "==> /a <==\n1\n\n==> /b <==\n2\n\n==> /c <==\n3\n", map[string]string{"/a": "1\n", "/b": "2\n", "/c": "3\n"}, ""},
		{"one missing", "==> /a <==\n1\n\n==> /c <==\n3\n", map[string]string{"/a": "1\n", "/c": "3\n"}, ""},
		{"first missing", "==> /b <==\n2\n", map[string]string{"/b": "2\n"}, ""},
		{"all missing", "", map[string]string{}, ""},
		{"empty files", "==> /a <==\n\n==> /b <==\n\n==> /c <==\n", map[string]string{"/a": "", "/b": "", "/c": ""}, ""},
		{"no newline at the end of a file", "==> /a <==\n1\n==> /b <==\n2", map[string]string{"/a": "1", "/b": "2"}, ""},
		{"a file that ends with blank lines", "==> /a <==\n1\n\n\n\n==> /b <==\n2\n", map[string]string{"/a": "1\n\n\n", "/b": "2\n"}, ""},
		{"a foreign header is text", "==> /a <==\n==> /x <==\n1\n\n==> /b <==\n2\n", map[string]string{"/a": "==> /x <==\n1\n", "/b": "2\n"}, ""},
		{"the own header again is text", "==> /a <==\n==> /a <==\n", map[string]string{"/a": "==> /a <==\n"}, ""},
		{"an earlier header is text", "==> /b <==\n==> /a <==\n", map[string]string{"/b": "==> /a <==\n"}, ""},
		{"a copied later header loses", "==> /a <==\n==> /c <==\n\n==> /b <==\n2\n\n==> /c <==\n3\n", map[string]string{"/a": "==> /c <==\n", "/b": "2\n", "/c": "3\n"}, ""},
		{"a copied earlier header loses", "==> /a <==\n1\n\n==> /c <==\n==> /b <==\n", map[string]string{"/a": "1\n", "/c": "==> /b <==\n"}, ""},
		{"a header inside a line is text", "==> /a <==\nx ==> /b <==\n", map[string]string{"/a": "x ==> /b <==\n"}, ""},
		{"a talking login shell", "Welcome!\n==> /a <==\n1\n", map[string]string{"/a": "1\n"}, ""},
		{"no header", "hello\n", nil, "tail -v: want the header of one of /a /b /c"},
		{"only foreign headers", "==> /x <==\n", nil, "tail -v: want the header of one of /a /b /c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Files([]byte(tt.in), paths)
			checkError(t, err, tt.err)
			texts := map[string]string(nil)
			if got != nil {
				texts = map[string]string{}
			}
			for p, b := range got {
				texts[p] = string(b)
			}
			if diff := cmp.Diff(tt.want, texts); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkError compares an error's text; want empty means none.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

// Files that were put together as tail does come apart again.
func FuzzFiles(f *testing.F) {
	f.Add("1\n", "2\n", "3\n", true)
	f.Add("", "no newline", "\n\n", true)
	f.Add("1\n", "", "3\n", false)
	f.Fuzz(func(t *testing.T, a, b, c string, withB bool) {
		texts, paths := []string{a, b, c}, []string{"/a", "/b", "/c"}
		if strings.Contains(a+b+c, "==>") {
			t.Skip("headers inside files are ambiguous; the table has them")
		}
		var out bytes.Buffer
		want := map[string]string{}
		for i, text := range texts {
			if i == 1 && !withB {
				continue
			}
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			out.WriteString("==> " + paths[i] + " <==\n" + text)
			want[paths[i]] = text
		}
		files, err := Files(out.Bytes(), paths)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for p, text := range files {
			got[p] = string(text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
