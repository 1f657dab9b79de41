package parse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitOptions(t *testing.T) {
	tests := []struct {
		in   string
		want []Option
	}{
		{"local:101/a.raw,size=8G,backup=1", []Option{{"file", "local:101/a.raw"}, {"size", "8G"}, {"backup", "1"}}},
		{"volume=/srv/a=b,mp=/x", []Option{{"volume", "/srv/a=b"}, {"mp", "/x"}}},
		{"/dev/disk/by-id/x=y,size=1G", []Option{{"file", "/dev/disk/by-id/x=y"}, {"size", "1G"}}},
		{" a = b , ,c", []Option{{"a", "b"}, {"file", "c"}}},
		{"mode=", []Option{{"mode", ""}}},
		{"", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, splitOptions(tt.in, "file")); diff != "" {
			t.Errorf("%q (-want +got)\n%s", tt.in, diff)
		}
	}
}

func TestSplitVolume(t *testing.T) {
	tests := []struct {
		in, storage, name string
		ok                bool
	}{
		{"local:101/a.raw", "local", "101/a.raw", true},
		{"nas:iso/a:b.iso", "nas", "iso/a:b.iso", true},
		{"/srv/a:b", "", "", false},
		{":a", "", "", false},
		{"a:", "", "", false},
		{"none", "", "", false},
	}
	for _, tt := range tests {
		if storage, name, ok := splitVolume(tt.in); storage != tt.storage || name != tt.name || ok != tt.ok {
			t.Errorf("%q: %q %q %v", tt.in, storage, name, ok)
		}
	}
}
