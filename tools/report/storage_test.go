package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pvelens/tools/parse"
)

// stateText is the form state for nodes that are all online and report.
func stateText(offline string, nodes []string, rrd ...string) []byte {
	var members, lines []string
	for i, n := range nodes {
		online := 1
		if n == offline {
			online = 0
		}
		members = append(members, fmt.Sprintf(`"%s": {"id": %d, "online": %d, "ip": "10.0.0.%d"}`, n, i+1, online, i+1))
		if n != offline {
			lines = append(lines, "pve2-node/"+n+":100::1795971290:0:2:0.1:0:1000:500:0:0:98000:9000:0:0")
		}
	}
	return []byte(fmt.Sprintf(`==> /etc/pve/.members <==
{"nodename": "%s", "version": 1, "cluster": {"name": "c", "version": 1, "nodes": %d, "quorate": 1}, "nodelist": {%s}}

==> /etc/pve/.vmlist <==
{"version": 1, "ids": {"100": {"node": "pve-a", "type": "qemu", "version": 1}}}

==> /etc/pve/.rrd <==
%s
`, nodes[0], len(nodes), strings.Join(members, ","), strings.Join(append(lines, rrd...), "\n")))
}

func storageViewOf(t *testing.T, state []byte, storages string) StorageView {
	t.Helper()
	st, err := parse.ParseState(state)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(storages) {
		b.WriteString("/etc/pve/storage.cfg:" + line)
	}
	c, err := parse.ParseClusterConfigs([]byte(b.String()))
	if err != nil || len(c.BadLines) > 0 {
		t.Fatal(err, c)
	}
	return StorageView{State: st, Storages: c.Storages, Jobs: c.BackupJobs, Sites: map[string]StorageSite{}}
}

const threeStorages = `dir: local
	path /var/lib/vz
	content iso,backup,vztmpl
zfspool: vmpool
	pool vmpool
	nodes pve-a,pve-b
	content images,rootdir
nfs: nas
	server 10.0.0.9
	export /x
	path /mnt/pve/nas
	content backup,images
`

// One shared storage that three nodes name, three local ones that only share a
// name, and one that is limited to two nodes: each is counted as what it is.
func TestSharedStorageCountsOnce(t *testing.T) {
	v := storageViewOf(t, stateText("", []string{"pve-a", "pve-b", "pve-c"},
		"pve2-storage/pve-a/local:1795971290:94000000000:21000000000", "pve2-storage/pve-b/local:1795971290:470000000000:44000000000",
		"pve2-storage/pve-c/local:1795971290:94000000000:10000000000", "pve2-storage/pve-a/vmpool:1795971290:300000000000:150000000000",
		"pve2-storage/pve-b/vmpool:1795971290:1900000000000:900000000000", "pve2-storage/pve-a/nas:1795971290:8000000000000:6200000000000",
		"pve2-storage/pve-b/nas:1795971290:8000000000000:6200000000000"), threeStorages)
	rows := StorageRows(v, false, false)
	if got, want := *TotalsOf(rows), (StorageTotals{10858e9, 7325e9, 6, []string{}}); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Storage+" "+r.Node+" "+r.State)
	}
	want := []string{"local pve-a active", "local pve-b active", "local pve-c active", "nas pve-a active", "nas pve-b active", "nas pve-c inactive", "vmpool pve-a active", "vmpool pve-b active"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	fs := Findings(Judge{}.StorageFindings(v, rows)...)
	if len(fs) != 1 || fs[0].Code != "STORAGE_INACTIVE" || fs[0].Severity != Warning || fs[0].Subject != "storage/pve-c/nas" {
		t.Errorf("got %+v, want pve-c's nas alone", fs)
	}
}

// An offline node's storages are unknown, and that is no finding of its own.
func TestStoragesOfAnOfflineNode(t *testing.T) {
	v := storageViewOf(t, stateText("pve-b", []string{"pve-a", "pve-b"},
		"pve2-storage/pve-a/local:1795971290:98000000000:9000000000", "pve2-storage/pve-a/nas:1795971290:2000000000000:500000000000"), threeStorages)
	rows := StorageRows(v, false, false)
	for _, r := range rows {
		if r.Node == "pve-b" && (r.State != Unknown || r.Active != nil || !strings.Contains(r.Reason, "offline")) {
			t.Errorf("%s: %+v", r.Storage, r)
		}
	}
	if got := TotalsOf(rows); got.TotalBytes != 98e9+2000e9 || !cmp.Equal(got.NotCounted, []string{"pve-a/vmpool", "pve-b/local", "pve-b/vmpool"}) {
		t.Errorf("got %+v", got)
	}
	for _, f := range Findings(Judge{}.StorageFindings(v, rows)...) {
		if strings.Contains(f.Subject, "pve-b") {
			t.Errorf("a finding about the offline node: %+v", f)
		}
	}
}

// Active, inactive, disabled and full, with free space only where it is measured.
func TestStorageStates(t *testing.T) {
	v := storageViewOf(t, stateText("", []string{"pve-a"},
		"pve2-storage/pve-a/local:1795971290:98566144000:22020096000", "pve2-storage/pve-a/local-lvm:1795971290:375809638400:322122547200",
		"pve2-storage/pve-a/pbs:1795971290:8796093022208:3298534883328", "pve2-storage/pve-a/san:1795971290:0:0"), `dir: local
	path /var/lib/vz
lvmthin: local-lvm
	vgname pve
	thinpool data
nfs: nas-old
	server 10.0.0.9
	export /y
	path /mnt/pve/nas-old
pbs: pbs
	server 10.0.0.8
	datastore main
dir: usb
	path /mnt/usb
	disable
iscsi: san
	portal 10.0.0.7
	target iqn.x
`)
	v.Sites["pve-a"] = StorageSite{
		Mounts:  []parse.Mount{{Source: "/dev/sda2", Target: "/", Type: "ext4"}},
		FS:      []parse.NodeFilesystem{{Type: "ext4", Source: "/dev/sda2", Target: "/", Available: Ptr(int64(71512883200))}},
		Reasons: []parse.StorageReason{{Text: "mount error: mount.nfs: Connection timed out for 10.0.0.9:/y"}},
	}
	rows := StorageRows(v, false, false)
	want := []Storage{
		{Storage: "local", Node: "pve-a", State: StorageActive, TotalBytes: Ptr(int64(98566144000)), UsedBytes: Ptr(int64(22020096000)), AvailableBytes: Ptr(int64(71512883200)), UsedRatio: Ptr(0.2234)},
		{Storage: "local-lvm", Node: "pve-a", State: StorageActive, TotalBytes: Ptr(int64(350 << 30)), UsedBytes: Ptr(int64(300 << 30)), AvailableBytes: Ptr(int64(50 << 30)), UsedRatio: Ptr(0.8571)},
		{Storage: "nas-old", Node: "pve-a", State: StorageInactive, Reason: "pvestatd: mount error: mount.nfs: Connection timed out for 10.0.0.9:/y"},
		{Storage: "pbs", Node: "pve-a", State: StorageActive, TotalBytes: Ptr(int64(8 << 40)), UsedBytes: Ptr(int64(3 << 40)), UsedRatio: Ptr(0.375)},
		{Storage: "san", Node: "pve-a", State: StorageActive, Reason: "storages of type iscsi have no size"},
		{Storage: "usb", State: StorageDisabled, Reason: "disabled in storage.cfg"},
	}
	ignore := cmpopts.IgnoreFields(Storage{}, "Type", "Content", "Shared", "Enabled", "Active")
	if d := cmp.Diff(want, rows, ignore, cmpopts.IgnoreUnexported(Storage{})); d != "" {
		t.Error(d)
	}
	var codes []string
	for _, f := range Findings(Judge{}.StorageFindings(v, rows)...) {
		codes = append(codes, f.Code+" "+string(f.Severity)+" "+f.Subject)
	}
	if d := cmp.Diff([]string{"STORAGE_FULL warning storage/pve-a/local-lvm", "STORAGE_INACTIVE warning storage/pve-a/nas-old"}, codes); d != "" {
		t.Error(d)
	}
}

func TestInactiveStorageIsCriticalWhereNeeded(t *testing.T) {
	for _, c := range []struct {
		name  string
		need  func(v *StorageView)
		want  Severity
		named string
	}{
		{"by nobody", func(*StorageView) {}, Warning, ""},
		{"by a job", func(v *StorageView) {
			v.Jobs = []parse.BackupJob{{ID: "nightly", Enabled: true, Schedule: "02:30", Storage: "nas"}}
		}, Critical, "nightly"},
		{"by a disabled job", func(v *StorageView) {
			v.Jobs = []parse.BackupJob{{ID: "nightly", Schedule: "02:30", Storage: "nas"}}
		}, Warning, ""},
		{"by a running guest", func(v *StorageView) {
			v.State.RRD.Guests = map[int]parse.RRDGuest{100: {Status: "running"}}
			v.Configs = []parse.GuestConfig{{VMID: 100, Node: "pve-a", Current: parse.GuestSettings{Disks: []parse.GuestDisk{{Storage: "nas", Kind: parse.DiskVolume}}}}}
		}, Critical, "100"},
		{"by a stopped guest", func(v *StorageView) {
			v.State.RRD.Guests = map[int]parse.RRDGuest{100: {Status: "stopped"}}
			v.Configs = []parse.GuestConfig{{VMID: 100, Node: "pve-a", Current: parse.GuestSettings{Disks: []parse.GuestDisk{{Storage: "nas", Kind: parse.DiskVolume}}}}}
		}, Warning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := storageViewOf(t, stateText("", []string{"pve-a", "pve-b"}, "pve2-storage/pve-b/nas:1795971290:2000:500"), "nfs: nas\n\tpath /mnt/pve/nas\n\tserver x\n\texport /y\n")
			c.need(&v)
			fs := Findings(Judge{}.StorageFindings(v, StorageRows(v, false, false))...)
			if len(fs) != 1 || fs[0].Severity != c.want {
				t.Fatalf("got %+v", fs)
			}
			last := fs[0].Evidence[len(fs[0].Evidence)-1].Value
			if c.named != "" && last != c.named {
				t.Errorf("named %s, want %s", last, c.named)
			}
		})
	}
}

// Storages whose free space is one count once together.
func TestStoragesThatShareSpace(t *testing.T) {
	v := storageViewOf(t, stateText("", []string{"pve-a"},
		"pve2-storage/pve-a/tank:1795971290:3000:1000", "pve2-storage/pve-a/tank-ct:1795971290:2300:300", "pve2-storage/pve-a/files:1795971290:2100:100",
		"pve2-storage/pve-a/local:1795971290:98000:9000", "pve2-storage/pve-a/more:1795971290:98000:9000"), `zfspool: tank
	pool tank/vm
zfspool: tank-ct
	pool tank/ct
dir: files
	path /tank/files
dir: local
	path /var/lib/vz
dir: more
	path /var/lib/more
`)
	v.Sites["pve-a"] = StorageSite{Mounts: []parse.Mount{{Source: "/dev/sda2", Target: "/", Type: "ext4"}, {Source: "tank/files", Target: "/tank/files", Type: "zfs"}}}
	rows := StorageRows(v, false, false)
	shares := map[string][]string{}
	for _, r := range rows {
		shares[r.Storage] = r.SharesSpaceWith
	}
	want := map[string][]string{"files": {"tank", "tank-ct"}, "tank": {"files", "tank-ct"}, "tank-ct": {"files", "tank"}, "local": {"more"}, "more": {"local"}}
	if d := cmp.Diff(want, shares); d != "" {
		t.Error(d)
	}
	// tank: 1000+300+100 used and 2000 free; the root filesystem once.
	if got := TotalsOf(rows); got.TotalBytes != 3400+98000 || got.UsedBytes != 1400+9000 {
		t.Errorf("got %+v", got)
	}
}

func TestDatasetInsideAnotherCountsOnce(t *testing.T) {
	v := storageViewOf(t, stateText("", []string{"pve-a"}, "pve2-storage/pve-a/all:1795971290:3000:1000", "pve2-storage/pve-a/ct:1795971290:2300:300"), "zfspool: all\n\tpool tank\nzfspool: ct\n\tpool tank/ct\n")
	if got := TotalsOf(StorageRows(v, false, false)); got.TotalBytes != 3000 || got.UsedBytes != 1000 {
		t.Errorf("got %+v", got)
	}
}

// A folder on the root filesystem whose path says that it should be a mount.
func TestFolderThatIsNotMounted(t *testing.T) {
	root := []parse.Mount{{Source: "/dev/sda2", Target: "/", Type: "ext4"}}
	mounted := append(root, parse.Mount{Source: "/dev/sdb1", Target: "/mnt/usb", Type: "ext4"})
	for _, c := range []struct {
		name, path, more string
		mounts           []parse.Mount
		total            int
		want             Severity // "" is none
	}{
		{"nothing is mounted", "/mnt/usb", "", root, 98000, Warning},
		{"mounted", "/mnt/usb", "", mounted, 500000, ""},
		{"a folder below the mount", "/mnt/usb/dump/", "", mounted, 500000, ""},
		{"a mount whose name only begins alike", "/mnt/usb2", "", mounted, 98000, Warning},
		{"is_mountpoint 0", "/srv/usb", "\tis_mountpoint 0\n", root, 98000, Warning},
		{"is_mountpoint 1: pvestatd looks itself", "/mnt/usb", "\tis_mountpoint 1\n", root, 98000, ""},
		{"a folder of its own in the root", "/backup", "", root, 98000, Warning},
		{"a place for such folders", "/var/lib/vz", "", root, 98000, ""},
		{"a deep folder elsewhere", "/data/pve/dump", "", root, 98000, Info},
		{"mounts not read, totals of the root", "/mnt/usb", "", nil, 98000, Warning},
		{"mounts not read, other totals", "/mnt/usb", "", nil, 500000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := storageViewOf(t, stateText("", []string{"pve-a"}, fmt.Sprintf("pve2-storage/pve-a/usb:1795971290:%d:9000", c.total)), "dir: usb\n\tpath "+c.path+"\n"+c.more)
			v.Sites["pve-a"] = StorageSite{Mounts: c.mounts}
			got := Severity("")
			for _, f := range Findings(Judge{}.StorageFindings(v, StorageRows(v, false, false))...) {
				if f.Code == "STORAGE_DIR_NOT_MOUNTED" {
					got = f.Severity
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestMissingMountIsTheReason(t *testing.T) {
	v := storageViewOf(t, stateText("", []string{"pve-a"}), "dir: usb\n\tpath /mnt/usb\n\tis_mountpoint yes\n")
	v.Sites["pve-a"] = StorageSite{Mounts: []parse.Mount{{Source: "/dev/sda2", Target: "/", Type: "ext4"}}}
	rows := StorageRows(v, false, false)
	if rows[0].State != StorageInactive || rows[0].Reason != "nothing is mounted at /mnt/usb, which is_mountpoint demands" {
		t.Errorf("got %+v", rows[0])
	}
}

func TestStorageOfOtherNodes(t *testing.T) {
	v := storageViewOf(t, stateText("", []string{"pve-a", "pve-b"}, "pve2-storage/pve-a/t:1795971290:3000:1000"), "zfspool: t\n\tpool t\n\tnodes pve-a\n")
	if rows := StorageRows(v, false, false); len(rows) != 1 {
		t.Errorf("got %d rows, want pve-a's alone", len(rows))
	}
	rows := StorageRows(v, true, false)
	if len(rows) != 2 || rows[1].State != StorageElsewhere || rows[1].Reason != "limited to pve-a" || rows[1].Active != nil {
		t.Errorf("got %+v", rows)
	}
	if fs := Findings(Judge{}.StorageFindings(v, rows)...); len(fs) > 0 {
		t.Errorf("got %+v, want none", fs)
	}
}

// What Proxmox reads into storage.cfg: local is there in every case, and a
// storage without content holds its type's default, not all it could hold.
func TestStoragesThatAreNotWritten(t *testing.T) {
	local := func(s parse.StorageConfig) parse.StorageConfig { s.ID, s.Path = "local", "/var/lib/vz"; return s }
	made := []string{"backup", "images", "iso", "rootdir", "snippets", "vztmpl"}
	for _, tt := range []struct {
		name string
		in   []parse.StorageConfig
		want []string // of local
		len  int
	}{
		{"an empty file", nil, made, 1},
		{"no local", []parse.StorageConfig{{ID: "tank", Type: "zfspool"}}, made, 2},
		{"local of another type", []parse.StorageConfig{{ID: "local", Type: "nfs", Path: "/mnt/pve/local"}}, made, 1},
		{"local elsewhere", []parse.StorageConfig{{ID: "local", Type: "dir", Path: "/srv"}}, made, 1},
		{"local as written", []parse.StorageConfig{local(parse.StorageConfig{Type: "dir", Content: []string{"iso"}})}, []string{"iso"}, 1},
		{"local limited to nodes", []parse.StorageConfig{local(parse.StorageConfig{Type: "dir", Nodes: []string{"pve1"}, Content: []string{"iso"}})}, []string{"iso"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := AllStorages(tt.in)
			i := slices.IndexFunc(got, func(s parse.StorageConfig) bool { return s.ID == "local" })
			if i < 0 || len(got) != tt.len {
				t.Fatalf("got %+v", got)
			}
			if s := got[i]; s.Type != "dir" || s.Path != "/var/lib/vz" || s.Nodes != nil || !slices.Equal(contentOf(s), tt.want) {
				t.Errorf("got %+v", s)
			}
		})
	}
	for kind, want := range map[string]string{
		"dir": "images rootdir", "btrfs": "images rootdir", "zfspool": "images rootdir", "lvmthin": "images rootdir", "lvm": "images", "rbd": "images",
		"nfs": "images", "cifs": "images", "glusterfs": "images", "iscsi": "images", "cephfs": "backup", "pbs": "backup", "esxi": "import",
	} {
		if got := strings.Join(contentOf(parse.StorageConfig{Type: kind}), " "); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
		if s := (parse.StorageConfig{Type: kind}); HoldsBackups(s) != (want == "backup") {
			t.Errorf("%s: HoldsBackups %v", kind, HoldsBackups(s))
		}
	}
}
