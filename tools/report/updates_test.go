package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

func TestNodeUpdates(t *testing.T) {
	now := healthNow.Unix()
	stamps := func(list, cache, dpkg int64) []parse.Stamp {
		return []parse.Stamp{{Path: pkgupdatesFile, Modified: now - list}, {Path: pkgcacheFile, Modified: now - cache}, {Path: dpkgStatusFile, Modified: now - dpkg}}
	}
	kernels := func(newest string) *parse.Packages {
		return &parse.Packages{Versions: map[string]string{"pve-manager": "9.1.2"}, Kernels: []parse.Kernel{{Release: newest}}}
	}
	none := []parse.AptRepository{}
	sub := parse.AptRepository{Enabled: true, Components: []string{"pve-no-subscription"}}
	ent := parse.AptRepository{Enabled: true, Components: []string{"pve-enterprise"}}
	security := parse.Update{Package: "x", Security: Ptr(true)}
	fix := parse.Update{Package: "y", DebianUpdate: true}
	other := parse.Update{Package: "z"}
	for _, tt := range []struct {
		name         string
		in           UpdateFacts
		list, reboot string
		want         []string
	}{
		{"nothing waits", UpdateFacts{Listed: true, Updates: []parse.Update{}, Stamps: stamps(100, 200, 300), Packages: kernels("6.8.12-9-pve"), Proc: &parse.NodeProc{Kernel: "6.8.12-9-pve"}, Repos: []parse.AptRepository{sub}, ReposRead: true}, "valid", "no", []string{}},
		{"security", UpdateFacts{Listed: true, Updates: []parse.Update{security, fix, other}, Stamps: stamps(100, 200, 300)}, "valid", "unknown", []string{"warning UPDATES_SECURITY node/n"}},
		{"stable fixes", UpdateFacts{Listed: true, Updates: []parse.Update{fix, other}, Stamps: stamps(100, 200, 300)}, "valid", "unknown", []string{"warning UPDATES_SECURITY node/n"}},
		{"others", UpdateFacts{Listed: true, Updates: []parse.Update{other}, Stamps: stamps(100, 200, 300)}, "valid", "unknown", []string{"info UPDATES_PENDING node/n"}},
		{"an old list", UpdateFacts{Listed: true, Updates: []parse.Update{}, Stamps: stamps(8*86400, 9*86400, 9*86400)}, "valid", "unknown", []string{"warning UPDATES_STALE node/n"}},
		{"older than the packages", UpdateFacts{Listed: true, Updates: []parse.Update{}, Stamps: stamps(100, 200, 50)}, "outdated", "unknown", []string{"info UPDATES_STALE node/n"}},
		{"no list", UpdateFacts{Listed: true, Stamps: stamps(100, 200, 300)[1:]}, "missing", "unknown", []string{"warning UPDATES_STALE node/n"}},
		{"the list was not read", UpdateFacts{Stamps: stamps(100, 200, 300)}, "valid", "unknown", []string{}},
		{"a newer kernel", UpdateFacts{Packages: kernels("6.8.12-10-pve"), Proc: &parse.NodeProc{Kernel: "6.8.12-9-pve"}}, "", "yes", []string{"info REBOOT_PENDING node/n"}},
		{"a newer kernel, but the running one is pinned", UpdateFacts{Packages: kernels("6.8.12-10-pve"), Proc: &parse.NodeProc{Kernel: "6.8.12-9-pve", PinnedKernel: "6.8.12-9-pve"}}, "", "no", []string{}},
		{"another one is pinned", UpdateFacts{Packages: kernels("6.8.12-10-pve"), Proc: &parse.NodeProc{Kernel: "6.8.12-10-pve", PinnedKernel: "6.8.12-9-pve"}}, "", "yes", []string{"info REBOOT_PENDING node/n"}},
		{"a kernel that is not installed runs", UpdateFacts{Packages: kernels("6.8.12-9-pve"), Proc: &parse.NodeProc{Kernel: "6.8.12-10-pve"}}, "", "unknown", []string{}},
		{"enterprise", UpdateFacts{Repos: []parse.AptRepository{ent}, ReposRead: true}, "", "unknown", []string{"info REPO_ENTERPRISE_NO_SUB node/n"}},
		{"both", UpdateFacts{Repos: []parse.AptRepository{ent, sub}, ReposRead: true}, "", "unknown", []string{"info REPO_ENTERPRISE_NO_SUB node/n", "info REPO_SEVERAL node/n"}},
		{"none", UpdateFacts{Repos: none, ReposRead: true}, "", "unknown", []string{"warning REPO_NONE node/n"}},
		{"repositories were not read", UpdateFacts{Repos: none}, "", "unknown", []string{}},
		{"the node could not be asked", UpdateFacts{Reason: "off", Listed: true}, "", "unknown", []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Node, tt.in.Now = "n", healthNow
			r, findings := Judge{}.NodeUpdatesOf(tt.in)
			if d := cmp.Diff(tt.want, told(findings)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if r.List != tt.list || r.Reboot != tt.reboot {
				t.Errorf("got list %q and reboot %q, want %q and %q", r.List, r.Reboot, tt.list, tt.reboot)
			}
		})
	}
}
