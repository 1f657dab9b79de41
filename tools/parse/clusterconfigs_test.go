package parse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseClusterConfigs(t *testing.T) {
	c, err := ParseClusterConfigs(testdata(t, "cluster-configs-pve9.txt"))
	if err != nil {
		t.Fatal(err)
	}
	storages := []StorageConfig{
		{ID: "local", Type: "dir", Path: "/var/lib/vz", Content: []string{"iso", "vztmpl", "backup", "images", "rootdir", "snippets", "import"},
			Prune: []Option{{"keep-daily", "7"}, {"keep-last", "3"}, {"keep-weekly", "4"}}},
		{ID: "local-lvm", Type: "lvmthin", ThinPool: "data", VGName: "pve", Content: []string{"rootdir", "images"}},
		{ID: "tank", Type: "zfspool", Pool: "tank/guests", Content: []string{"images", "rootdir"}, Mountpoint: "/tank/guests", Nodes: []string{"pve1", "pve3"}, Sparse: true},
		{ID: "nas-nfs", Type: "nfs", Shared: true, Path: "/mnt/pve/nas-nfs", Server: "192.168.20.50", Export: "/volume1/proxmox", Content: []string{"backup", "iso"}, Prune: []Option{{"keep-last", "5"}}},
		{ID: "nas-smb", Type: "cifs", Shared: true, Path: "/mnt/pve/nas-smb", Server: "nas.home.arpa", Share: "backup", Content: []string{"backup"}},
		{ID: "pbs-main", Type: "pbs", Shared: true, Datastore: "main", Server: "pbs.home.arpa", Content: []string{"backup"}, Namespace: "heimlabor", Prune: []Option{{"keep-all", "1"}}},
		{ID: "usb-backup", Type: "dir", Path: "/srv/usb-backup", Content: []string{"backup"}, Nodes: []string{"pve1"}, Prune: []Option{{"keep-all", "1"}}},
		{ID: "old-nas", Type: "dir", Disabled: true, Shared: true, Path: "/mnt/old-nas", Content: []string{"backup", "iso"}},
	}
	if diff := cmp.Diff(storages, c.Storages); diff != "" {
		t.Errorf("storages (-want +got)\n%s", diff)
	}
	jobs := []BackupJob{
		{ID: "backup-3f1c0a6e-9c1a", Enabled: true, Schedule: "02:30", All: true, Compress: "zstd", Exclude: []int{105, 202}, Mode: "snapshot", Prune: []Option{{"keep-daily", "7"}, {"keep-weekly", "4"}}, Storage: "usb-backup"},
		{ID: "backup-77aa12cd-4e21", Enabled: true, Schedule: "sat 03:15", Compress: "zstd", Mode: "stop", Pool: "prod", RepeatMissed: true, Storage: "pbs-main"},
		{ID: "backup-old", Schedule: "sun 01:00", Mode: "suspend", Node: "pve2", Storage: "nas-nfs", VMIDs: []int{110, 210}},
	}
	if diff := cmp.Diff(jobs, c.BackupJobs); diff != "" {
		t.Errorf("jobs (-want +got)\n%s", diff)
	}
	replication := []ReplicationJob{
		{ID: "102-0", VMID: 102, Type: "local", Source: "pve1", Target: "pve3", Schedule: "*/30", Rate: new(50.0)},
		{ID: "203-0", VMID: 203, Type: "local", Source: "pve1", Target: "pve2", Disabled: true, RemoveJob: "local"},
	}
	if diff := cmp.Diff(replication, c.ReplicationJobs); diff != "" {
		t.Errorf("replication (-want +got)\n%s", diff)
	}
	resources := []HAResource{
		{SID: "ct:101", VMID: 101, State: "started", MaxRelocate: new(int64(2)), MaxRestart: new(int64(3))},
		{SID: "vm:200", VMID: 200, State: "started"},
		{SID: "vm:210", VMID: 210, State: "stopped", Failback: new(false)},
		{SID: "ct:120", VMID: 120, State: "ignored"},
	}
	if diff := cmp.Diff(resources, c.HAResources); diff != "" {
		t.Errorf("HA resources (-want +got)\n%s", diff)
	}
	rules := []HARule{
		{ID: "proxy-nodes", Type: "node-affinity", Resources: []string{"ct:101"}, Nodes: []HANode{{"pve1", new(int64(2))}, {"pve3", new(int64(1))}}},
		{ID: "proxy-haos-apart", Type: "resource-affinity", Resources: []string{"ct:101", "vm:200"}, Affinity: "negative"},
	}
	if diff := cmp.Diff(rules, c.HARules); diff != "" {
		t.Errorf("HA rules (-want +got)\n%s", diff)
	}
	mappings := []ResourceMapping{
		{Kind: "pci", ID: "gpu-t400", Entries: []MappingEntry{{Node: "pve1", Path: "0000:01:00.0", ID: "10de:1ff2", Options: []Option{{"iommugroup", "14"}, {"subsystem-id", "10de:1613"}}}}},
		{Kind: "usb", ID: "zigbee", Entries: []MappingEntry{{Node: "pve1", ID: "10c4:ea60"}}},
	}
	if diff := cmp.Diff(mappings, c.Mappings); diff != "" {
		t.Errorf("mappings (-want +got)\n%s", diff)
	}
	if c.BadLines != nil || c.OtherSections != nil || len(c.HAGroups) != 0 {
		t.Errorf("bad lines %v, other sections %q, groups %v", c.BadLines, c.OtherSections, c.HAGroups)
	}
}

// in prefixes each line of one file as grep -H does.
func in(path, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(path + ":" + line)
	}
	return b.String()
}

func TestParseClusterConfigsOfOtherVersions(t *testing.T) {
	c, err := ParseClusterConfigs([]byte(
		in(storagePath, "dir: usb\n\tpath /mnt/usb\n\tis_mountpoint 1\n\tmaxfiles 3\ndir: sub\n\tpath /mnt/x/sub\n\tis_mountpoint /mnt/x\n\tshared\ndir: off\n\tpath /a\n\tis_mountpoint no\nfancy: third-party\n\tserver a\n\tfancy_password hunter2\n") +
			in(jobsPath, "vzdump: legacy\n\tstarttime 03:00\n\tdow mon,fri\n\tvmid 104, 105;999\n\tmaxfiles 2\nvzdump: fleece\n\tall\n\tfleecing enabled=1,storage=local-lvm\nrealm-sync: ldap\n\tenabled 1\nvzdump: broken\n\tvmid 1,abc,2\n\tenabled maybe\n") +
			in(haGroupsPath, "group: main\n\tnodes pve2:1,pve1\n\tnofailback 1\n\trestricted 1\n")))
	if err != nil {
		t.Fatal(err)
	}
	storages := []StorageConfig{
		{ID: "usb", Type: "dir", Path: "/mnt/usb", MustBeMounted: "/mnt/usb", MaxFiles: new(int64(3))},
		{ID: "sub", Type: "dir", Path: "/mnt/x/sub", MustBeMounted: "/mnt/x", Shared: true},
		{ID: "off", Type: "dir", Path: "/a"},
		{ID: "third-party", Type: "fancy", Server: "a", OtherKeys: []string{"fancy_password"}},
	}
	if diff := cmp.Diff(storages, c.Storages); diff != "" {
		t.Errorf("storages (-want +got)\n%s", diff)
	}
	jobs := []BackupJob{
		{ID: "legacy", Enabled: true, StartTime: "03:00", DOW: "mon,fri", VMIDs: []int{104, 105, 999}, MaxFiles: new(int64(2))},
		{ID: "fleece", Enabled: true, All: true, Fleecing: true, FleecingStorage: "local-lvm"},
		{ID: "broken", Enabled: true, VMIDs: []int{1, 2}},
	}
	if diff := cmp.Diff(jobs, c.BackupJobs); diff != "" {
		t.Errorf("jobs (-want +got)\n%s", diff)
	}
	groups := []HAGroup{{ID: "main", Nodes: []HANode{{"pve2", new(int64(1))}, {"pve1", nil}}, Restricted: true, NoFailback: true}}
	if diff := cmp.Diff(groups, c.HAGroups); diff != "" {
		t.Errorf("groups (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"realm-sync: ldap"}, c.OtherSections); diff != "" {
		t.Errorf("other sections (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int{26, 27}, c.BadLines); diff != "" {
		t.Errorf("bad lines (-want +got)\n%s", diff)
	}
}

func TestParseClusterConfigsOtherKeys(t *testing.T) {
	c, err := ParseClusterConfigs([]byte(
		in(storagePath, "btrfs: b\n\tmax-protected-backups -1\n\tblocksize 4k\n") +
			in(jobsPath, "vzdump: j\n\texclude-path /tmp,/var\n\tremove 0\n\tnotes-template x\n\tfleecing enabled=x\n\tprotected\n") +
			in(replicationPath, "local: odd\n\tcomment x\n") +
			in(haResourcesPath, "vm: name\n\tgroup main\n\tcomment x\n") +
			in(haGroupsPath, "group: g\n\tcomment x\nother: g\n") +
			in(haRulesPath, "node-affinity: r\n\tdisable\n\tcomment x\n") +
			in(dirMappingPath, "share\n\tmap node=a,path=/srv\n\tmap path=/x\n\tdescription x\n") +
			in(pciMappingPath, "gpu\n\tmdev 1\n\tlive-migration-capable\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := &ClusterConfigs{
		Storages:        []StorageConfig{{ID: "b", Type: "btrfs", MaxProtected: new(int64(-1)), OtherKeys: []string{"blocksize"}}},
		BackupJobs:      []BackupJob{{ID: "j", Enabled: true, ExcludePath: []string{"/tmp", "/var"}, Remove: new(false), Protected: true, OtherKeys: []string{"notes-template"}}},
		ReplicationJobs: []ReplicationJob{{ID: "odd", Type: "local", OtherKeys: []string{"comment"}}},
		HAResources:     []HAResource{{SID: "vm:name", Group: "main", OtherKeys: []string{"comment"}}},
		HAGroups:        []HAGroup{{ID: "g", OtherKeys: []string{"comment"}}},
		HARules:         []HARule{{ID: "r", Type: "node-affinity", Disabled: true, OtherKeys: []string{"comment"}}},
		Mappings: []ResourceMapping{
			{Kind: "directory", ID: "share", Entries: []MappingEntry{{Node: "a", Path: "/srv"}, {Path: "/x"}}, OtherKeys: []string{"description"}},
			{Kind: "pci", ID: "gpu", Entries: []MappingEntry{}, MDev: true, LiveMigrate: true},
		},
		OtherSections: []string{"other: g"}, BadLines: []int{8, 23},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSharedStorageTypes(t *testing.T) {
	want := map[string]bool{
		"iscsi": true, "nfs": true, "cifs": true, "rbd": true, "cephfs": true, "iscsidirect": true, "glusterfs": true, "zfs": true,
		"drbd": true, "pbs": true, "esxi": true, "dir": false, "btrfs": false, "lvm": false, "lvmthin": false, "zfspool": false, "third-party": false,
	}
	for kind, shared := range want {
		c, err := ParseClusterConfigs([]byte(in(storagePath, kind+": s\n\tpath /x\n")))
		if err != nil || c.Storages[0].Shared != shared {
			t.Errorf("%s: %+v, %v; want shared %v", kind, c, err, shared)
		}
	}
}

func TestParseClusterConfigsErrors(t *testing.T) {
	tests := []struct{ name, in, err string }{
		{"garbage", "grep: Permission denied\nx\n", "cluster configs: line 1 and 1 more: want /etc/pve/FILE.cfg:LINE"},
		{"another file", "/etc/pve/user.cfg:user: root@pam\n", "cluster configs: line 1: want /etc/pve/FILE.cfg:LINE"},
		{"property without a section", "/etc/pve/storage.cfg:\tpath /a\n", "cluster configs: line 1: want /etc/pve/FILE.cfg:LINE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ParseClusterConfigs([]byte(tt.in))
			checkError(t, err, tt.err)
			if c != nil {
				t.Error("a result came with the error")
			}
		})
	}
	if c, err := ParseClusterConfigs(nil); err != nil || len(c.Storages) != 0 || c.Storages == nil {
		t.Errorf("empty output: %v, %v; want empty lists", c, err)
	}
}

// A broken line costs no section of another file, and no name is invented.
func FuzzClusterConfigs(f *testing.F) {
	for line := range strings.Lines(string(testdata(f, "cluster-configs-pve9.txt"))) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ReplaceAll(line, "\n", " ")
		c, err := ParseClusterConfigs([]byte(in(storagePath, "dir: good\n\tpath /good\n") + line + "\n" + in(haResourcesPath, "ct: 101\n\tstate started\n")))
		if err != nil {
			t.Fatal(err)
		}
		if c.Storages[0].ID != "good" {
			t.Error("the storage before the line was lost")
		}
		if last := c.HAResources[len(c.HAResources)-1]; last.SID != "ct:101" || last.State != "started" {
			t.Error("the resource after the line was lost")
		}
		for _, s := range c.Storages[1:] {
			if !strings.Contains(line, s.ID) {
				t.Error("a storage that is not in the input")
			}
		}
	})
}
