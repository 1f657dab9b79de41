package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var addresses = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

func static(address, gateway string) Addressing {
	a := Addressing{Mode: AddressStatic, Address: netip.MustParsePrefix(address)}
	if gateway != "" {
		a.Gateway = netip.MustParseAddr(gateway)
	}
	return a
}

func mode(m string) Addressing { return Addressing{Mode: m} }

// caseConfig reads the configuration of one written case.
func caseConfig(t *testing.T, kind, name string) GuestConfig {
	t.Helper()
	g, err := GuestConfigText(kind, testdata(t, "cases/"+name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	if g.BadLines != nil {
		t.Fatalf("bad lines %v", g.BadLines)
	}
	return g
}

func TestGuestConfigsOfACluster(t *testing.T) {
	guests, err := GuestConfigs(bytes.NewReader(testdata(t, "guest-configs-pve9.txt")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range guests {
		got = append(got, fmt.Sprintf("%s %d %s %s %d", g.Kind, g.VMID, g.Node, g.Current.Name, len(g.Snapshots)))
		if g.BadLines != nil || g.Current.OtherKeys != nil || g.OtherSections != nil {
			t.Errorf("%d: bad lines %v, other keys %q, other sections %q", g.VMID, g.BadLines, g.Current.OtherKeys, g.OtherSections)
		}
	}
	want := []string{
		"lxc 101 pve1 web-proxy 0", "lxc 102 pve1 immich 4", "lxc 103 pve1 pihole 0", "lxc 104 pve1 postgres 0",
		"lxc 105 pve1 debian-13-vorlage 0", "lxc 106 pve1 jellyfin-mit-einem-wirklich-sehr-langen-namen.home.arpa 0",
		"lxc 107 pve1 oci-app 0", "lxc 110 pve2 mqtt 0", "lxc 120 pve3 unifi 0", "qemu 200 pve1 haos 0",
		"qemu 201 pve1 windows-11-arbeitsplatz-buero 0", "qemu 202 pve1 debian-13-cloud 0", "qemu 203 pve1 docker 2",
		"qemu 204 pve1 opnsense 0", "qemu 205 pve1  0", "qemu 210 pve2 nas-vm 0", "qemu 220 pve3 k3s-1 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestGuestConfigOfAContainer(t *testing.T) {
	g, err := GuestConfigFile("lxc", "pve1", 102, testdata(t, "lxc-config-102.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := GuestSettings{
		Name: "immich", Parent: "nach_update", Tags: []string{"prod"}, OSType: "ubuntu", Arch: "amd64", OnBoot: true,
		Cores: new(int64(4)), CPULimit: new(3.5), MemoryBytes: new(int64(6 << 30)), SwapBytes: new(int64(0)), Unprivileged: true,
		Features: &Features{Nesting: true},
		Disks: []GuestDisk{
			{Key: "rootfs", Bus: "rootfs", Kind: DiskVolume, Storage: "local", Volume: "local:102/vm-102-disk-0.raw", SizeBytes: new(int64(20 << 30))},
			{Key: "mp0", Bus: "mp", Kind: DiskBind, Source: "/srv/photos", MountPoint: "/mnt/photos", Backup: new(false), ReadOnly: new(false), Replicate: new(false)},
			{Key: "mp1", Bus: "mp", Index: 1, Kind: DiskVolume, Storage: "local", Volume: "local:102/vm-102-disk-1.raw", MountPoint: "/var/lib/immich", ACL: new(true), Backup: new(true), Quota: new(false), MountOptions: []string{"noatime"}, SizeBytes: new(int64(100 << 30))},
			{Key: "mp2", Bus: "mp", Index: 2, Kind: DiskVolume, Storage: "usb-backup", Volume: "usb-backup:subvol-102-disk-0", MountPoint: "/backup", Shared: new(true)},
		},
		NICs: []GuestNIC{
			{Key: "net0", Name: "eth0", Bridge: "vmbr0", MAC: "BC:24:11:AA:01:02", Type: "veth", IPv4: mode("dhcp"), IPv6: mode("auto")},
			{Key: "net1", Index: 1, Name: "eth1", Bridge: "vmbr1", Firewall: true, MAC: "BC:24:11:AA:02:02", Type: "veth", IPv4: static("10.20.0.102/24", ""), LinkDown: true, MTU: new(int64(1400)), Rate: new(12.5), VLAN: new(int64(20))},
			{Key: "net2", Index: 2, Name: "eth2", Bridge: "vmbr1", MAC: "BC:24:11:AA:03:02", Type: "veth", IPv4: mode("manual"), Trunks: []string{"10", "20", "30"}},
		},
	}
	if diff := cmp.Diff(want, g.Current, addresses); diff != "" {
		t.Errorf("current (-want +got)\n%s", diff)
	}
	type snap struct {
		Name, Parent string
		Time         int64
	}
	var got []snap
	for _, s := range g.Snapshots {
		got = append(got, snap{s.Name, s.Settings.Parent, *s.Time})
	}
	snaps := []snap{{"grundzustand", "", 1790812800}, {"vor_update", "grundzustand", 1792108800}, {"experiment", "grundzustand", 1791504000}, {"nach_update", "vor_update", 1793318400}}
	if diff := cmp.Diff(snaps, got); diff != "" {
		t.Errorf("snapshots (-want +got)\n%s", diff)
	}
	if g.Pending != nil || g.Snapshots[2].Settings.Name != "immich-test" || len(g.Snapshots[0].Settings.Disks) != 1 {
		t.Errorf("pending %v, snapshots %+v", g.Pending, g.Snapshots[2])
	}
}

func TestGuestConfigOfAVM(t *testing.T) {
	g, err := GuestConfigFile("qemu", "pve1", 203, testdata(t, "qemu-config-203.txt"))
	if err != nil {
		t.Fatal(err)
	}
	pending := &PendingSettings{
		Keys: []string{"cores", "memory", "net1"}, Delete: []string{"scsi1"},
		Settings: GuestSettings{Cores: new(int64(6)), MemoryBytes: new(int64(12 << 30)),
			NICs: []GuestNIC{{Key: "net1", Index: 1, Model: "virtio", MAC: "BC:24:11:BB:12:03", Bridge: "vmbr1", VLAN: new(int64(30))}}},
	}
	if diff := cmp.Diff(pending, g.Pending, addresses); diff != "" {
		t.Errorf("pending (-want +got)\n%s", diff)
	}
	cloudinit := &GuestSettings{IPConfigs: []IPConfig{{Key: "ipconfig0", IPv4: static("192.168.20.99/24", "192.168.20.1")}}}
	if diff := cmp.Diff(cloudinit, g.CloudInit, addresses); diff != "" {
		t.Errorf("cloud-init (-want +got)\n%s", diff)
	}
	ipconfigs := []IPConfig{
		{Key: "ipconfig0", IPv4: static("192.168.20.203/24", "192.168.20.1"), IPv6: static("fd00:20::203/64", "")},
		{Key: "ipconfig1", Index: 1, IPv4: static("10.20.0.203/24", "")},
	}
	if diff := cmp.Diff(ipconfigs, g.Current.IPConfigs, addresses); diff != "" {
		t.Errorf("ipconfig (-want +got)\n%s", diff)
	}
	disks := []GuestDisk{
		{Key: "ide2", Bus: "ide", Index: 2, Kind: DiskCloudInit, Storage: "local", Volume: "local:203/vm-203-cloudinit.qcow2", Media: "cdrom"},
		{Key: "scsi0", Bus: "scsi", Kind: DiskVolume, Storage: "local", Volume: "local:203/vm-203-disk-0.qcow2", Discard: new(true), SizeBytes: new(int64(40 << 30))},
		{Key: "scsi1", Bus: "scsi", Index: 1, Kind: DiskVolume, Storage: "tank", Volume: "tank:vm-203-disk-1", Backup: new(false), SizeBytes: new(int64(200 << 30))},
	}
	if diff := cmp.Diff(disks, g.Current.Disks); diff != "" {
		t.Errorf("disks (-want +got)\n%s", diff)
	}
	ram := g.Snapshots[0]
	if ram.Name != "mit_ram" || ram.Settings.VMState != "local:203/vm-203-state-mit_ram.raw" || ram.Settings.Parent != "sauber" || *ram.Time != 1793577600 {
		t.Errorf("snapshot with memory: %+v", ram)
	}
	if !g.Current.Agent.Enabled || *g.Current.BalloonBytes != 0 || *g.Current.CreatedAt != 1737000000 {
		t.Errorf("agent %v, balloon %v, created %v", g.Current.Agent, g.Current.BalloonBytes, g.Current.CreatedAt)
	}
}

func TestLXCAddressingModes(t *testing.T) {
	g := caseConfig(t, "lxc", "lxc-addressing-modes")
	want := []GuestNIC{
		{Key: "net0", Name: "eth0", Bridge: "vmbr0", MAC: "BC:24:11:00:01:50", Type: "veth", VLAN: new(int64(20)), IPv4: static("10.20.0.150/24", "10.20.0.1"), IPv6: mode("auto")},
		{Key: "net1", Index: 1, Name: "eth1", Bridge: "vmbr1", MAC: "BC:24:11:00:01:51", Type: "veth", IPv4: mode("manual"), IPv6: mode("manual")},
		{Key: "net2", Index: 2, Name: "eth2", Bridge: "vmbr2", MAC: "BC:24:11:00:01:52", Type: "veth", IPv6: static("2001:db8:20::50/64", "2001:db8:20::1")},
		{Key: "net3", Index: 3, Name: "wan0.7", Bridge: "vmbr3", MAC: "BC:24:11:00:01:53", Type: "veth", IPv4: mode("dhcp"), IPv6: mode("dhcp"), HostManaged: true, MTU: new(int64(1492)), Trunks: []string{"5", "6"}},
		{Key: "net4", Index: 4, Name: "eth4", MAC: "BC:24:11:00:01:54", Type: "veth", IPv4: static("10.99.0.1/32", ""), LinkDown: true},
	}
	if diff := cmp.Diff(want, g.Current.NICs, addresses); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLXCMountKinds(t *testing.T) {
	g := caseConfig(t, "lxc", "lxc-mount-kinds")
	want := []GuestDisk{
		{Key: "rootfs", Bus: "rootfs", Kind: DiskVolume, Storage: "local-lvm", Volume: "local-lvm:vm-140-disk-0", SizeBytes: new(int64(8589934592))},
		{Key: "mp0", Bus: "mp", Kind: DiskBind, Source: "/mnt/pve/nas/movies", MountPoint: "/media/movies", ReadOnly: new(true), Shared: new(true)},
		{Key: "mp1", Bus: "mp", Index: 1, Kind: DiskBind, Source: "/srv/a=b", MountPoint: "/media/x"},
		{Key: "mp2", Bus: "mp", Index: 2, Kind: DiskDevice, Source: "/dev/disk/by-id/ata-DISK_X-part1", MountPoint: "/media/disk", MountOptions: []string{"noatime", "nodev"}},
		{Key: "mp10", Bus: "mp", Index: 10, Kind: DiskVolume, Storage: "nas", Volume: "nas:140/vm-140-disk-0.raw", MountPoint: "/data", SizeBytes: new(int64(1099511627776))},
		{Key: "unused0", Bus: "unused", Kind: DiskUnused, Storage: "local-lvm", Volume: "local-lvm:vm-140-disk-1"},
	}
	if diff := cmp.Diff(want, g.Current.Disks); diff != "" {
		t.Errorf("disks (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(&Features{Nesting: true, Mount: []string{"nfs", "cifs"}}, g.Current.Features); diff != "" {
		t.Errorf("features (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]PassedDevice{{Key: "dev0", Kind: "dev", Hosts: []string{"/dev/dri/renderD128"}, Options: []Option{{"gid", "104"}}}}, g.Current.Devices); diff != "" {
		t.Errorf("devices (-want +got)\n%s", diff)
	}
	if g.Current.NICs[0].MAC != "BC:24:11:00:01:40" {
		t.Errorf("MAC %q, want upper case", g.Current.NICs[0].MAC)
	}
}

func TestLXCRawKeysRepeat(t *testing.T) {
	g := caseConfig(t, "lxc", "lxc-raw-keys-repeat")
	want := RawLXC{
		Lines: []Option{
			{"lxc.apparmor.profile", "unconfined"}, {"lxc.cgroup2.devices.allow", "c 226:0 rwm"}, {"lxc.cgroup2.devices.allow", "c 226:128 rwm"},
			{"lxc.cap.drop", ""}, {"lxc.mount.entry", "/mnt/samba mnt/samba none"}, {"lxc.mount.entry", "/dev/dri dev/dri none"},
			{"lxc.idmap", "u 0 100000 65536"}, {"lxc.idmap", "g 0 100000 65536"},
		},
		AppArmorProfile: "unconfined", DevicesAllow: []string{"c 226:0 rwm", "c 226:128 rwm"},
		IDMaps: []IDMap{{"u", 0, 100000, 65536}, {"g", 0, 100000, 65536}},
		Mounts: []RawMount{{"/mnt/samba", "mnt/samba", "none"}, {"/dev/dri", "dev/dri", "none"}},
	}
	if diff := cmp.Diff(want, g.Current.Raw, addresses); diff != "" {
		t.Errorf("raw (-want +got)\n%s", diff)
	}
	if d := g.Current.Description; d == nil || *d != "# Media\n[wiki](http://wiki.lab)\n100% ok" {
		t.Errorf("description %v", d)
	}
	if g.Current.Unprivileged || !g.Current.Features.Nesting || !g.Current.Features.Keyctl {
		t.Errorf("unprivileged %v, features %+v", g.Current.Unprivileged, g.Current.Features)
	}
}

func TestLXCRawLines(t *testing.T) {
	g, err := GuestConfigText("lxc", []byte("lxc.apparmor.profile = unconfined\nlxc.cap.drop: a b\nlxc.cap.drop:\nlxc.cap.drop: c\n"+
		"lxc.net.1.type: phys\nlxc.net.0.type: veth\nlxc.net.0.link: vmbr9\nlxc.net.0.hwaddr: bc:24:11:00:00:09\nlxc.net.0.ipv4.address: 10.9.0.2/24 10.9.0.255\n"+
		"lxc.net.0.ipv4.gateway: auto\nlxc.net.0.ipv6.gateway: fe80::1\nlxc.environment: TOKEN=secret\nlxc.init.cmd =\n"+
		"lxc.mount.entry: //nas/my\\040files mnt/x cifs username=u,password=secret 0 0\nlxc.idmap: u 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	raw := g.Current.Raw
	nics := []RawNIC{
		{Index: 0, Type: "veth", Link: "vmbr9", MAC: "BC:24:11:00:00:09", Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24")}, Gateways: []netip.Addr{netip.MustParseAddr("fe80::1")}},
		{Index: 1, Type: "phys"},
	}
	if diff := cmp.Diff(nics, raw.NICs, addresses); diff != "" {
		t.Errorf("NICs (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c"}, raw.CapDrop); diff != "" || raw.AppArmorProfile != "unconfined" {
		t.Errorf("cap.drop (-want +got)\n%sprofile %q", diff, raw.AppArmorProfile)
	}
	if diff := cmp.Diff([]RawMount{{"//nas/my files", "mnt/x", "cifs"}}, raw.Mounts); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"lxc.environment", "lxc.init.cmd"}, g.Current.SetKeys); diff != "" {
		t.Errorf("set keys (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int{15}, g.BadLines); diff != "" {
		t.Errorf("bad lines (-want +got)\n%s", diff)
	}
	if strings.Contains(fmt.Sprintf("%+v", g), "secret") {
		t.Error("a secret came through")
	}
}

func TestLXCRawResets(t *testing.T) {
	g, err := GuestConfigText("lxc", []byte("lxc.idmap: u 0 1 2\nlxc.idmap:\nlxc.mount.entry: /a b none\nlxc.mount.entry:\nlxc.mount.entry: /only\nlxc.idmap: u a b c\n"+
		"lxc.cap.keep: x y\nlxc.cgroup.devices.deny: a\nlxc.apparmor.allow_nesting: 1\nlxc.net.2.link: c\nlxc.net.0.link: a\nlxc.net.1.link: b\nlxc.net.x.link: q\nlxc.net.1.flags: up\nlxc.net.0.ipv6.address:\nlxc.net.0.ipv4.address: nonsense\nlxc.net.0.ipv4.gateway:\nlxc.net.0.ipv4.gateway: nonsense\n"))
	if err != nil {
		t.Fatal(err)
	}
	raw := g.Current.Raw
	if raw.IDMaps != nil || raw.Mounts != nil || len(raw.CapKeep) != 2 || len(raw.DevicesDeny) != 1 || len(raw.Lines) != 12 {
		t.Errorf("%+v", raw)
	}
	links := ""
	for _, n := range raw.NICs {
		links += n.Link
	}
	if links != "abc" {
		t.Errorf("links %q, want them by index", links)
	}
	if diff := cmp.Diff([]string{"lxc.net.x.link", "lxc.net.1.flags"}, g.Current.SetKeys); diff != "" {
		t.Errorf("set keys (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int{5, 6, 16, 18}, g.BadLines); diff != "" {
		t.Errorf("bad lines (-want +got)\n%s", diff)
	}
}

func TestLXCBackupFlags(t *testing.T) {
	got := map[string]*bool{}
	for _, d := range caseConfig(t, "lxc", "lxc-which-disks-are-backed-up").Current.Disks {
		got[d.Key+" "+d.Kind] = d.Backup
	}
	want := map[string]*bool{"rootfs volume": nil, "mp0 volume": nil, "mp1 volume": new(true), "mp2 bind": nil, "mp3 volume": new(false)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTags(t *testing.T) {
	g := caseConfig(t, "lxc", "tags-separators")
	if diff := cmp.Diff([]string{"prod", "web", "DB", "cache", "_x.1+y"}, g.Current.Tags); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestQEMUNICs(t *testing.T) {
	g := caseConfig(t, "qemu", "qemu-nics-odd-but-valid")
	want := []GuestNIC{
		{Key: "net1", Index: 1, Model: "virtio", MAC: "BC:24:11:00:02:01", Bridge: "vmbr1", VLAN: new(int64(30)), MTU: new(int64(1)), Queues: new(int64(4))},
		{Key: "net2", Index: 2, Model: "e1000", MAC: "BC:24:11:00:02:02", Bridge: "vmbr0", LinkDown: true, Rate: new(12.5)},
		{Key: "net3", Index: 3, Model: "virtio", MAC: "BC:24:11:00:02:03", Bridge: "vmbr0", Trunks: []string{"10-20", "30", "40"}},
		{Key: "net4", Index: 4, Model: "virtio", MAC: "BC:24:11:00:02:04"},
		{Key: "net10", Index: 10, Model: "virtio", MAC: "BC:24:11:00:02:10", Bridge: "vnet12", MTU: new(int64(9000))},
	}
	if diff := cmp.Diff(want, g.Current.NICs, addresses); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d := g.Current.Disks[0]; d.Key != "ide2" || d.Kind != DiskCDROM || d.Volume != "" {
		t.Errorf("empty drive: %+v", d)
	}
	if diff := cmp.Diff([]string{"scsi0", "ide2"}, g.Current.BootOrder); diff != "" || !g.Current.Agent.Enabled {
		t.Errorf("boot order (-want +got)\n%s", diff)
	}
}

func TestQEMUDiskKinds(t *testing.T) {
	g := caseConfig(t, "qemu", "orphan-disks")
	var got []string
	for _, d := range g.Current.Disks {
		size := int64(-1)
		if d.SizeBytes != nil {
			size = *d.SizeBytes
		}
		got = append(got, fmt.Sprintf("%s %s %s %d", d.Key, d.Kind, d.Volume, size))
	}
	want := []string{
		"efidisk0 efidisk local-zfs:vm-220-disk-0 1048576", "ide0 cloudinit local-zfs:vm-220-cloudinit 4194304",
		"ide3 cdrom nas:iso/debian-13.1.0-amd64-netinst.iso 822083584", "scsi0 volume local-zfs:vm-220-disk-1 68719476736",
		"scsi1 volume local-zfs:vm-220-disk-3 214748364800", "tpmstate0 tpmstate local-zfs:vm-220-disk-2 4194304",
		"unused0 unused local-zfs:vm-220-disk-4 -1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if g.Current.VMState != "local-zfs:vm-220-state-suspend-2026-11-28" || g.Current.Lock != "suspended" {
		t.Errorf("vmstate %q, lock %q", g.Current.VMState, g.Current.Lock)
	}
}

func TestGuestConfigTextHidesSecrets(t *testing.T) {
	tests := []struct {
		kind, file string
		set        []string
		hidden     string
	}{
		{"lxc", "pct_config_107.txt", []string{"entrypoint", "env"}, "Europe/Berlin"},
		{"qemu", "qm_config_203.txt", []string{"smbios1", "vmgenid"}, "33333333"},
	}
	for _, tt := range tests {
		g, err := GuestConfigText(tt.kind, testdata(t, tt.file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.set, g.Current.SetKeys); diff != "" {
			t.Errorf("%s: set keys (-want +got)\n%s", tt.file, diff)
		}
		if strings.Contains(fmt.Sprintf("%+v", g), tt.hidden) {
			t.Errorf("%s: a value that must not be kept came through", tt.file)
		}
	}
}

// The file as grep sends it and the text of pct config agree.
func TestGuestConfigSourcesAgree(t *testing.T) {
	file, err := GuestConfigFile("lxc", "pve1", 102, testdata(t, "lxc-config-102.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := GuestConfigText("lxc", testdata(t, "pct_config_102.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if *text.Current.Description != "Immich Fotos" || !slices.Equal(text.Current.OtherKeys, []string{"timezone"}) {
		t.Errorf("description %q, other keys %q", *text.Current.Description, text.Current.OtherKeys)
	}
	text.Current.Description, text.Current.OtherKeys = nil, nil
	if diff := cmp.Diff(file.Current, text.Current, addresses); diff != "" {
		t.Errorf("(-file +text)\n%s", diff)
	}
}

func TestGuestSettings(t *testing.T) {
	tests := []struct {
		name, kind, in string
		want           GuestSettings
		bad            []int
	}{
		{"agent with options", "qemu", "agent: enabled=0,fstrim_cloned_disks=1,type=isa\n", GuestSettings{Agent: &Agent{Type: "isa", Options: []Option{{"fstrim_cloned_disks", "1"}}}}, nil},
		{"memory as a property", "qemu", "memory: current=2048\n", GuestSettings{MemoryBytes: new(int64(2 << 30))}, nil},
		{"legacy boot", "qemu", "boot: cdn\nbootdisk: scsi0\n", GuestSettings{BootLegacy: "cdn", BootDisk: "scsi0"}, nil},
		{"empty boot order", "qemu", "boot: order=\n", GuestSettings{BootOrder: []string{}}, nil},
		{"CPU with flags", "qemu", "cpu: host,flags=+aes;-pcid,hidden=1\n", GuestSettings{CPUType: "host", CPUFlags: []string{"+aes", "-pcid"}}, nil},
		{"machine with options", "qemu", "machine: type=q35,viommu=intel\nvga: memory=32\n", GuestSettings{Machine: "q35"}, nil},
		{"startup", "lxc", "startup: order=1,up=30,down=60\n", GuestSettings{Startup: &Startup{new(int64(1)), new(int64(30)), new(int64(60))}}, nil},
		{"startup by number alone", "lxc", "startup: 7\n", GuestSettings{Startup: &Startup{Order: new(int64(7))}}, nil},
		{"the alias of ide2", "qemu", "cdrom: local:iso/a.iso\n", GuestSettings{Disks: []GuestDisk{{Key: "cdrom", Bus: "cdrom", Kind: DiskCDROM, Storage: "local", Volume: "local:iso/a.iso"}}}, nil},
		{"the node's own drive", "qemu", "ide2: cdrom,media=cdrom\n", GuestSettings{Disks: []GuestDisk{{Key: "ide2", Bus: "ide", Index: 2, Kind: DiskCDROM, Source: "cdrom", Media: "cdrom"}}}, nil},
		{"file with a key", "qemu", "scsi3: file=tank:vm-1-disk-0,iops_rd=5,backup=maybe\n", GuestSettings{Disks: []GuestDisk{{Key: "scsi3", Bus: "scsi", Index: 3, Kind: DiskVolume, Storage: "tank", Volume: "tank:vm-1-disk-0", Options: []Option{{"iops_rd", "5"}, {"backup", "maybe"}}}}}, nil},
		{"a key that repeats", "qemu", "cores: 1\ncores: 2\nscsi0: a:b\nscsi0: c:d\n", GuestSettings{Cores: new(int64(2)), Disks: []GuestDisk{{Key: "scsi0", Bus: "scsi", Kind: DiskVolume, Storage: "c", Volume: "c:d"}}}, nil},
		{"devices", "qemu", "hostpci0: 01:00.0;01:00.1\nusb0: host=1-1.2\nserial1: /dev/ttyS0\nvirtiofs0: share,cache=auto\nparallel0: /dev/parport0\n", GuestSettings{Devices: []PassedDevice{
			{Key: "parallel0", Kind: "parallel", Hosts: []string{"/dev/parport0"}}, {Key: "hostpci0", Kind: "pci", Hosts: []string{"01:00.0", "01:00.1"}},
			{Key: "serial1", Index: 1, Kind: "serial", Hosts: []string{"/dev/ttyS0"}}, {Key: "usb0", Kind: "usb", Hosts: []string{"1-1.2"}},
			{Key: "virtiofs0", Kind: "virtiofs", Mapping: "share", Options: []Option{{"cache", "auto"}}}}}, nil},
		{"an address that is none", "lxc", "net0: name=eth0,ip=300.1.1.1/24,ip6=auto\n", GuestSettings{NICs: []GuestNIC{{Key: "net0", Name: "eth0", IPv6: mode("auto"), Options: []Option{{"ip", "300.1.1.1/24"}}}}}, nil},
		{"an unknown card", "qemu", "net0: fancy9=bc:24:11:00:00:01,bridge=vmbr0\n", GuestSettings{NICs: []GuestNIC{{Key: "net0", Model: "fancy9", MAC: "BC:24:11:00:00:01", Bridge: "vmbr0"}}}, nil},
		{"comments of a raw file are the description", "qemu", "#line 1%3A\n#second\ncores: 1\n", GuestSettings{Cores: new(int64(1)), Description: new("line 1:\nsecond")}, nil},
		{"broken values cost only themselves", "lxc", "cores: abc\nmemory: 5.5\nhostname: ok\nno colon\nonboot: 2\n: x\n", GuestSettings{Name: "ok"}, []int{1, 2, 4, 5, 6}},
		{"keys without a value are set", "qemu", "description:\ncipassword:\nargs:\nnameserver:\n", GuestSettings{SetKeys: []string{"description", "cipassword", "args", "nameserver"}}, nil},
		{"unknown keys by name", "qemu", "rng0: source=/dev/urandom\nfuture-key: 1\n", GuestSettings{OtherKeys: []string{"rng0", "future-key"}}, nil},
		{"an empty drive without its media word", "qemu", "ide3: none\n", GuestSettings{Disks: []GuestDisk{{Key: "ide3", Bus: "ide", Index: 3, Kind: DiskCDROM}}}, nil},
		{"cloud-init on a storage of directories", "qemu", "ide0: nas:cloudinit,media=cdrom\nide1: nas:9/vm-9-cloudinit.raw,media=cdrom\nide2: nas:iso/my-cloudinit.iso,media=cdrom\n", GuestSettings{Disks: []GuestDisk{
			{Key: "ide0", Bus: "ide", Kind: DiskCloudInit, Storage: "nas", Volume: "nas:cloudinit", Media: "cdrom"},
			{Key: "ide1", Bus: "ide", Index: 1, Kind: DiskCloudInit, Storage: "nas", Volume: "nas:9/vm-9-cloudinit.raw", Media: "cdrom"},
			{Key: "ide2", Bus: "ide", Index: 2, Kind: DiskCDROM, Storage: "nas", Volume: "nas:iso/my-cloudinit.iso", Media: "cdrom"}}}, nil},
		{"disk flags", "qemu", "virtio0: a:b,discard=ignore,format=raw,ssd=1,iothread=0,file=c:d,,replicate=0\n", GuestSettings{Disks: []GuestDisk{{Key: "virtio0", Bus: "virtio", Kind: DiskVolume, Storage: "a", Volume: "a:b",
			Discard: new(false), Format: "raw", SSD: new(true), IOThread: new(false), Replicate: new(false), Options: []Option{{"file", "c:d"}}}}}, nil},
		{"disks, NICs and devices without a value", "qemu", "name: a\nscsi0: size=5G\nnet0: ,\nusb0: usb3=1\nipconfig0: ,\n", GuestSettings{Name: "a"}, []int{2, 3, 4, 5}},
		{"cloud-init options", "qemu", "ipconfig0: ip=10.0.0.5,fancy=1,gw=x\n", GuestSettings{IPConfigs: []IPConfig{{Key: "ipconfig0", IPv4: static("10.0.0.5/32", ""), Options: []Option{{"fancy", "1"}, {"gw", "x"}}}}}, nil},
		{"keys of a VM", "qemu", "vcpus: 2\nhugepages: any\nkvm: 0\nacpi: 1\nhotplug: disk,network\namd-sev: type=snp,x=1\nintel-tdx: 1\nvmstatestorage: nas\ncpuunits: 50\nnuma: 1\n", GuestSettings{VCPUs: new(int64(2)), Hugepages: "any",
			KVM: new(false), ACPI: new(true), Hotplug: "disk,network", AMDSEV: "snp", IntelTDX: "1", VMStateStorage: "nas", CPUUnits: new(int64(50)), NUMA: new(true)}, nil},
		{"broken words inside values", "qemu", "name: a\nstartup: order=x\nagent: perhaps\ncpu: hidden=1\nballoon: -5\n", GuestSettings{Name: "a"}, []int{2, 3, 4, 5}},
		{"any order at startup", "qemu", "startup: order=any,up=5\n", GuestSettings{Startup: &Startup{Up: new(int64(5))}}, nil},
		{"unknown and unreadable features", "lxc", "features: nesting=1,fuse=x,bpf=1,mknod=1,force_rw_sys=1\n", GuestSettings{Features: &Features{Nesting: true, MkNod: true, ForceRWSys: true, Options: []Option{{"fuse", "x"}, {"bpf", "1"}}}}, nil},
		{"secret keys twice", "lxc", "env: a\nenv: b\nlxc.environment: c\nlxc.environment: d\n", GuestSettings{SetKeys: []string{"env", "lxc.environment"}}, nil},
		{"numbers too large for a key", "qemu", "scsi99999999999999999999: a:b\nnet70000: model=x\n", GuestSettings{OtherKeys: []string{"scsi99999999999999999999", "net70000"}}, nil},
		{"carriage returns", "qemu", "cores: 2\r\nname: a\r\n", GuestSettings{Cores: new(int64(2)), Name: "a"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := GuestConfigText(tt.kind, []byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, g.Current, addresses); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.bad, g.BadLines); diff != "" {
				t.Errorf("bad lines (-want +got)\n%s", diff)
			}
		})
	}
}

func TestGuestConfigSections(t *testing.T) {
	g, err := GuestConfigText("qemu", []byte("cores: 1\n[pending]\ndelete: !scsi1, net0\nargs: x\n[special:fleecing]\nfleecing-images: a:b,c:d\n"+
		"[special:new]\ncores: 9\n[stuck]\nsnapstate: delete\nsnaptime: 0\n[half\ncores: 8\n[late]\nsnaptime: soon\ncores: 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	if *g.Current.Cores != 1 {
		t.Errorf("current cores %d: another section leaked into it", *g.Current.Cores)
	}
	if diff := cmp.Diff(&PendingSettings{Keys: []string{"args"}, Delete: []string{"scsi1", "net0"}, Settings: GuestSettings{SetKeys: []string{"args"}}}, g.Pending, addresses); diff != "" {
		t.Errorf("pending (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:b", "c:d"}, g.FleecingImages); diff != "" {
		t.Errorf("fleecing (-want +got)\n%s", diff)
	}
	snaps := []GuestSnapshot{{Name: "stuck", State: "delete"}, {Name: "late", Settings: GuestSettings{Cores: new(int64(7))}}}
	if diff := cmp.Diff(snaps, g.Snapshots, addresses); diff != "" {
		t.Errorf("snapshots (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int{12, 15}, g.BadLines); diff != "" {
		t.Errorf("bad lines (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"special:new"}, g.OtherSections); diff != "" {
		t.Errorf("other sections (-want +got)\n%s", diff)
	}
	lxc, err := GuestConfigText("lxc", []byte("[pending]\nsnaptime: 5\n[pve:pending]\ncores: 2\n"))
	if err != nil || len(lxc.Snapshots) != 1 || lxc.Snapshots[0].Name != "pending" || lxc.Pending == nil {
		t.Errorf("a container's snapshot called pending: %+v, %v", lxc, err)
	}
}

func TestGuestConfigsBrokenInput(t *testing.T) {
	const good = "/etc/pve/nodes/pve1/lxc/101.conf:hostname: a\n"
	tests := []struct {
		name, in, err string
		vmids         []int
		bad           []int
	}{
		{"nothing", "", "", []int{}, nil},
		{"garbage", "Permission denied\n", "guest configs: line 1: want " + guestLine, []int{}, nil},
		{"stray lines cost no guest", "Welcome\n" + good + "\nbye\n", "guest configs: line 1 and 1 more: want " + guestLine, []int{101}, nil},
		{"copies are no guests", "/etc/pve/nodes/pve1/lxc/101-old.conf:hostname: b\n/etc/pve/nodes/pve1/lxc/1.conf.d/2.conf:x\n" + good, "", []int{101}, nil},
		{"another directory is no guest", "/etc/pve/nodes/pve1/other/5.conf:hostname: b\n" + good, "", []int{101}, nil},
		{"a broken line of a guest", good + "/etc/pve/nodes/pve1/lxc/101.conf:???\n/etc/pve/nodes/pve2/qemu-server/100.conf:name: b\n", "", []int{100, 101}, []int{2}},
		{"a value with a path in it", good + "/etc/pve/nodes/pve1/lxc/101.conf:tags: /etc/pve/nodes/x/lxc/9.conf:y\n", "", []int{101}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			guests, err := GuestConfigs(strings.NewReader(tt.in))
			checkError(t, err, tt.err)
			vmids, bad := []int{}, []int(nil)
			for _, g := range guests {
				vmids, bad = append(vmids, g.VMID), append(bad, g.BadLines...)
			}
			if diff := cmp.Diff(tt.vmids, vmids); diff != "" {
				t.Errorf("guests (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.bad, bad); diff != "" {
				t.Errorf("bad lines (-want +got)\n%s", diff)
			}
		})
	}
}

func TestGuestConfigsReaderFails(t *testing.T) {
	broken := errors.New("broken pipe")
	guests, err := GuestConfigs(io.MultiReader(strings.NewReader("/etc/pve/nodes/pve1/lxc/101.conf:hostname: a\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || guests != nil {
		t.Errorf("%v, %v; want no guests and the reader's error", guests, err)
	}
	_, err = GuestConfigs(strings.NewReader(strings.Repeat("x", 2<<20)))
	checkError(t, err, "guest configs: want lines of at most 1048576 bytes")
}

func TestGuestConfigFileErrors(t *testing.T) {
	_, err := GuestConfigText("openvz", nil)
	checkError(t, err, "guest config: want the kind lxc or qemu")
	_, err = GuestConfigText("lxc", []byte("[{\"a\":1}\nnope\n"))
	checkError(t, err, "guest config: line 1 and 1 more: want KEY: VALUE")
	if g, err := GuestConfigFile("qemu", "pve1", 205, nil); err != nil || g.VMID != 205 {
		t.Errorf("an empty file: %+v, %v", g, err)
	}
}

// Whatever one guest's line says, its neighbours come out the same, and no
// value of a secret key is kept.
func FuzzGuestConfigs(f *testing.F) {
	for line := range strings.Lines(string(testdata(f, "guest-configs-pve9.txt"))) {
		_, text, _ := strings.Cut(line, ".conf:")
		f.Add(strings.TrimSpace(text))
	}
	f.Add("cipassword: SECRET")
	f.Add("lxc.environment = A=SECRET")
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.NewReplacer("\n", "", "\r", "").Replace(line)
		if len(line) > longestGuest/2 {
			t.Skip("too long")
		}
		before := "/etc/pve/nodes/a/lxc/100.conf:rootfs: x:y,size=1G\n"
		after := "/etc/pve/nodes/b/qemu-server/300.conf:net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\n"
		middle := "/etc/pve/nodes/a/lxc/200.conf:"
		with, err := GuestConfigs(strings.NewReader(before + middle + line + "\n" + middle + "hostname: m\n" + after))
		if err != nil {
			t.Fatal(err)
		}
		without, err := GuestConfigs(strings.NewReader(before + after))
		if err != nil {
			t.Fatal(err)
		}
		if len(with) != 3 || cmp.Diff(without[0], with[0], addresses) != "" || cmp.Diff(without[1], with[2], addresses) != "" {
			t.Errorf("a neighbour changed")
		}
		if key, value, ok := splitSetting(line); ok && isSecretKey(key) && len(value) > 8 {
			if strings.Contains(fmt.Sprintf("%+v", with[1]), value) {
				t.Errorf("the value of a secret key was kept")
			}
		}
	})
}

func BenchmarkGuestConfigs(b *testing.B) {
	one := testdata(b, "guest-configs-pve9.txt")
	all := bytes.Repeat(one, 60) // about 1,000 guests
	b.SetBytes(int64(len(all)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := GuestConfigs(bytes.NewReader(all)); err != nil {
			b.Fatal(err)
		}
	}
}
