package parse

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameAddresses lets cmp compare addresses, which have no exported fields.
var sameAddresses = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

// captured returns a recorded output.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "b", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, sameAddresses); d != "" {
		t.Errorf("mismatch (-want +got):\n%s", d)
	}
}

// wantError checks that err is there exactly when words are, and holds them.
func wantError(t *testing.T, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case words != "" && (err == nil || !strings.Contains(err.Error(), words)):
		t.Fatalf("got error %v, want one with %q", err, words)
	}
}

// garbage is what no parser may accept as an answer or panic on.
var garbage = []string{
	"", " \n", "null", "{", "[", `[{"`, "[1,2]", `"text"`, "12", "{}", `{"a":{"b":[[[`, "\x00\xff\xfe", "ipcc_send_rec[1] failed: Connection refused\n",
	`[{"id":{"x":1},"name":[[]],"vmid":{},"size":[],"volid":7}]`,
}

func noteTexts(notes []Note) []string {
	out := []string{}
	for _, n := range notes {
		out = append(out, n.String())
	}
	return out
}
