package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pvelens/allowlist"
)

// composed are the forms whose identity the tools put together from a guest's
// type, a runtime and a verb.
var composed = map[string][]string{
	`+"-config"`:     {"lxc-config", "qemu-config"},
	`+ "-status"`:    {"lxc-status", "qemu-status"},
	`+ "-cgroup"`:    {"lxc-cgroup", "qemu-cgroup"},
	`+ "-history"`:   {"lxc-history", "qemu-history"},
	`+ "-snapshots"`: {"lxc-snapshots", "qemu-snapshots"},
	`"lxc-"+form`:    {"lxc-docker-ps", "lxc-docker-inspect", "lxc-docker-client", "lxc-docker-version", "lxc-podman-ps", "lxc-podman-inspect"},
	`"qemu-"+form`:   {"qemu-docker-ps", "qemu-docker-inspect", "qemu-podman-ps", "qemu-podman-inspect"},
	`"host-"+form`:   {"host-docker-ps", "host-docker-inspect", "host-docker-client", "host-docker-version", "host-podman-ps", "host-podman-inspect"},
}

// TestEveryFormHasAUser: nothing is permitted that no tool and no check of
// doctor asks for.
func TestEveryFormHasAUser(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob("../transport/*.go")
	var code strings.Builder
	for _, name := range append(files, more...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(b)
	}
	used := map[string]bool{}
	for text, ids := range composed {
		if !strings.Contains(code.String(), text) {
			t.Errorf("no tool composes %s", text)
		}
		for _, id := range ids {
			used[id] = true
		}
	}
	for _, f := range allowlist.Forms() {
		if !used[f.ID] && !strings.Contains(code.String(), `"`+f.ID+`"`) && !(f.Effect == allowlist.None && plain(f)) {
			t.Errorf("form %s has no user", f.ID)
		}
	}
}
