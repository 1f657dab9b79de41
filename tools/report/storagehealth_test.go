package report

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// told renders findings as SEVERITY CODE SUBJECT, sorted as reports are.
func told(fs []*Finding) []string {
	out := []string{}
	for _, f := range Findings(fs...) {
		out = append(out, string(f.Severity)+" "+f.Code+" "+f.Subject)
	}
	return out
}

func TestZPoolFindings(t *testing.T) {
	days := func(n int) *time.Time { return Ptr(healthNow.AddDate(0, 0, -n)) }
	scrub := parse.ZPoolScan{Kind: "scrub", State: "finished", At: days(21)}
	leaf := func(name, state string, r, w, c int64) parse.ZPoolDevice {
		return parse.ZPoolDevice{Name: name, Level: 2, Leaf: true, State: state, Read: &r, Write: &w, Cksum: &c}
	}
	for _, tt := range []struct {
		name  string
		facts StorageFacts
		state string
		want  []string
	}{
		{"well", StorageFacts{States: map[string]string{"p": "ONLINE"}, Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub, DataErrors: Ptr(int64(0)), Devices: []parse.ZPoolDevice{leaf("d", "ONLINE", 0, 0, 0)}}}}, "ok", []string{}},
		{"online, but with errors", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub, Devices: []parse.ZPoolDevice{leaf("d", "ONLINE", 1, 0, 1050)}}}}, "warning", []string{"warning ZFS_DEVICE_ERRORS storage/n/p"}},
		{"scrubbed 40 days ago", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: parse.ZPoolScan{Kind: "scrub", State: "finished", At: days(40)}}}}, "ok", []string{}},
		{"scrubbed 77 days ago", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: parse.ZPoolScan{Kind: "scrub", State: "finished", At: days(77)}}}}, "warning", []string{"warning ZFS_SCRUB_OVERDUE storage/n/p"}},
		{"a scrub runs", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: parse.ZPoolScan{Kind: "scrub", State: "running", At: days(77)}}}}, "ok", []string{}},
		{"a resilver hides the scrub", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: parse.ZPoolScan{Kind: "resilver", State: "finished", At: days(40)}}}}, "ok", []string{}},
		{"no scrub since an old resilver", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: parse.ZPoolScan{Kind: "resilver", State: "finished", At: days(77)}}}}, "warning", []string{"warning ZFS_SCRUB_OVERDUE storage/n/p"}},
		{"errors of no single disk", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub, Devices: []parse.ZPoolDevice{{Name: "raidz1-0", Level: 1, State: "ONLINE", Cksum: Ptr(int64(4))}, leaf("d", "ONLINE", 0, 0, 0)}}}}, "warning", []string{"warning ZFS_DEVICE_ERRORS storage/n/p"}},
		{"a spare is gone", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub, Devices: []parse.ZPoolDevice{leaf("d", "ONLINE", 0, 0, 0), {Name: "s", Class: "spares", Level: 1, Leaf: true, State: "UNAVAIL"}}}}}, "warning", []string{"warning ZFS_DEVICE_LOST storage/n/p"}},
		{"a spare waits, another is in use", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub, Devices: []parse.ZPoolDevice{{Name: "s", Class: "spares", Level: 1, Leaf: true, State: "AVAIL"}, {Name: "t", Class: "spares", Level: 1, Leaf: true, State: "INUSE"}}}}}, "ok", []string{}},
		{"degraded beside a suspended one", StorageFacts{States: map[string]string{"p": "DEGRADED"}, Skipped: "x"}, "critical", []string{"critical ZFS_POOL_DEGRADED storage/n/p"}},
		{"never scrubbed", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE"}}}, "ok", []string{"info ZFS_SCRUB_OVERDUE storage/n/p"}},
		{"degraded", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "DEGRADED", Scan: scrub, Devices: []parse.ZPoolDevice{leaf("d", "FAULTED", 3, 0, 0)}}}}, "critical", []string{"critical ZFS_POOL_DEGRADED storage/n/p", "warning ZFS_DEVICE_ERRORS storage/n/p"}},
		{"data lost", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub, DataErrors: Ptr(int64(2))}}}, "critical", []string{"critical ZFS_DATA_ERRORS storage/n/p"}},
		{"suspended is asked nothing more", StorageFacts{States: map[string]string{"p": "SUSPENDED"}, Skipped: "x"}, "critical", []string{"critical ZFS_POOL_SUSPENDED storage/n/p"}},
		{"not asked beside a suspended one", StorageFacts{States: map[string]string{"p": "ONLINE"}, Skipped: "x"}, "unknown", []string{}},
		{"full", StorageFacts{Pools: []parse.ZPool{{Name: "p", State: "ONLINE", Scan: scrub}}, Sizes: []parse.ZPoolSize{{Name: "p", Size: Ptr(int64(100)), Allocated: Ptr(int64(80)), Fragmentation: Ptr(0.51)}}}, "warning", []string{"warning ZFS_POOL_FULL storage/n/p", "info ZFS_FRAGMENTED storage/n/p"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Node, tt.facts.Now = "n", healthNow
			rows, findings := Judge{}.StorageComponents(tt.facts)
			if d := cmp.Diff(tt.want, told(findings)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if len(rows) != 1 || rows[0].State != tt.state {
				t.Errorf("got rows %+v, want one in state %s", rows, tt.state)
			}
		})
	}
}

func TestThinFindings(t *testing.T) {
	pool := func(data, meta float64, virtual int64, trouble parse.PoolTrouble) parse.ThinPool {
		return parse.ThinPool{Group: "pve", Name: "data", Size: Ptr(int64(1000)), DataUsed: &data, MetadataUsed: &meta, VirtualBytes: virtual, Trouble: trouble}
	}
	for _, tt := range []struct {
		name string
		in   parse.ThinPool
		want []string
	}{
		{"calm", pool(0.5, 0.1, 900, ""), []string{}},
		{"metadata is full although data is not", pool(0.61, 0.9375, 0, ""), []string{"critical THIN_METADATA_FULL storage/n/pve/data"}},
		{"data at its limit", pool(0.80, 0.1, 0, ""), []string{"warning THIN_DATA_FULL storage/n/pve/data"}},
		{"flagged by LVM, said once", pool(1, 0.1, 0, parse.PoolOutOfData), []string{"critical THIN_DATA_FULL storage/n/pve/data"}},
		{"failed", pool(0.1, 0.1, 0, parse.PoolFailed), []string{"critical THIN_POOL_FAILED storage/n/pve/data"}},
		{"failed and not active", parse.ThinPool{Group: "pve", Name: "data", Trouble: parse.PoolFailed}, []string{"critical THIN_POOL_FAILED storage/n/pve/data"}},
		{"overcommitted and empty", pool(0.1, 0.1, 1600, ""), []string{"info THIN_OVERCOMMIT storage/n/pve/data"}},
		{"overcommitted and filling", pool(0.71, 0.1, 1600, ""), []string{"warning THIN_OVERCOMMIT storage/n/pve/data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows, findings := Judge{}.StorageComponents(StorageFacts{Node: "n", Now: healthNow, LVM: &parse.LVM{Pools: []parse.ThinPool{tt.in}}})
			if d := cmp.Diff(tt.want, told(findings)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			worst := HealthOK
			if fs := Findings(findings...); len(fs) > 0 && fs[0].Severity != Info {
				worst = string(fs[0].Severity)
			}
			if rows[0].State != worst {
				t.Errorf("state %s, want that of the worst finding, %s", rows[0].State, worst)
			}
		})
	}
}

func TestDiskFindings(t *testing.T) {
	for _, tt := range []struct {
		name, state, reason string
		smart               *parse.SMART
		want                []string
	}{
		{"well", "ok", "", &parse.SMART{Health: parse.DiskGood, WearLeft: Ptr(80), MediaErrors: Ptr(int64(0))}, []string{}},
		{"asleep", "unknown", "it sleeps and was not woken", &parse.SMART{Asleep: true}, []string{}},
		{"not read", "unknown", "why", nil, []string{}},
		{"says nothing", "unknown", "it says nothing of its health", &parse.SMART{Health: parse.DiskUnknown}, []string{}},
		{"little life left", "critical", "disk sda has 5 % of its rated life left", &parse.SMART{Health: parse.DiskGood, WearLeft: Ptr(5)}, []string{"critical SMART_WEAR node/n/sda"}},
		{"replaced sectors", "warning", "disk sda: 0 media errors, 7 replaced sectors", &parse.SMART{Health: parse.DiskGood, Reallocated: Ptr(int64(7))}, []string{"warning SMART_MEDIA_ERRORS node/n/sda"}},
		{
			"failed by wear alone", "critical", "disk sda says that it fails: worn; nothing else is wrong: plan its replacement",
			&parse.SMART{Health: parse.DiskFailed, Reasons: []string{"worn"}, OnlyWear: true}, []string{"critical SMART_FAILED node/n/sda"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows, findings := Judge{}.StorageComponents(StorageFacts{Node: "n", Now: healthNow, Disks: []DiskFacts{{Disk: parse.PhysicalDisk{Name: "sda"}, SMART: tt.smart, Reason: "why"}}})
			if d := cmp.Diff(tt.want, told(findings)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if rows[0].State != tt.state || rows[0].Reason != tt.reason {
				t.Errorf("got %s: %s, want %s: %s", rows[0].State, rows[0].Reason, tt.state, tt.reason)
			}
		})
	}
}

func TestFilesystems(t *testing.T) {
	fs := func(kind, source, target string, used, avail int64) parse.NodeFilesystem {
		return parse.NodeFilesystem{Type: kind, Source: source, Target: target, Size: Ptr(used + avail), Used: &used, Available: &avail, Inodes: Ptr(int64(100)), InodesUsed: Ptr(int64(10))}
	}
	full := fs("ext4", "/dev/sdb1", "/srv", 10, 90)
	full.InodesUsed = Ptr(int64(96))
	rows, findings := Judge{}.StorageComponents(StorageFacts{Node: "n", Now: healthNow, FS: []parse.NodeFilesystem{
		fs("tmpfs", "tmpfs", "/run", 99, 1), fs("squashfs", "/dev/loop0", "/snap", 100, 0), fs("zfs", "tank", "/tank", 99, 1),
		fs("ext4", "/dev/sda1", "/", 86, 14), fs("ext4", "/dev/sda1", "/again", 86, 14), fs("xfs", "/dev/sdc1", "/data", 95, 5), full,
	}})
	want := []string{"critical NODE_FS_FULL node/n", "critical NODE_INODES_FULL node/n", "warning NODE_ROOTFS_FULL node/n"}
	if d := cmp.Diff(want, told(findings)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"/", "/data", "/srv"}) {
		t.Errorf("got filesystems %v", names)
	}
}
