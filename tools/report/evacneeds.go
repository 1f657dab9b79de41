package report

import (
	"fmt"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// evacNeeds is what a guest needs to be moved: what forbids it anywhere, what
// forbids it while it runs, and what the target must have.
type evacNeeds struct {
	hard     []string // against any move
	noLive   []string // against a move of a running VM
	caveats  []string
	bridges  []string
	storages []string         // needed on the target
	local    map[string]int64 // bytes to copy, by storage
	mappings []parse.PassedDevice
	vcpus    int64
	with     bool // local disks or a local cloud-init drive go along
}

func (n *evacNeeds) block(format string, args ...any) {
	n.hard = appendOnce(n.hard, fmt.Sprintf(format, args...))
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// copies sums what is copied.
func (n *evacNeeds) copies() *int64 {
	if len(n.local) == 0 {
		return nil
	}
	sum := int64(0)
	for _, b := range n.local {
		sum += b
	}
	return &sum
}

// needsOf reads a guest's configuration for everything that ties it to its node,
// as qemu-server (QemuMigrate) and pve-container (Migrate) check it in PVE 7 to
// 9, and what these do not check but a start on the target needs.
func (v *EvacView) needsOf(kind string, cfg *parse.GuestConfig) evacNeeds {
	n := evacNeeds{local: map[string]int64{}}
	if cfg == nil {
		n.block("its configuration was not read")
		return n
	}
	if len(cfg.BadLines) > 0 {
		n.block("%s of its configuration could not be read", many(len(cfg.BadLines), "line"))
	}
	kept := v.keptBySnapshots(kind, cfg, &n)
	for _, d := range cfg.Current.Disks {
		v.disk(kind, d, kept[d.Volume], &n)
	}
	if vol := cfg.Current.VMState; vol != "" {
		storage, _, _ := strings.Cut(vol, ":")
		v.disk(kind, parse.GuestDisk{Key: "vmstate", Kind: parse.DiskVolume, Storage: storage, Volume: vol}, "", &n)
	}
	v.settings(kind, cfg.Current, &n)
	if cfg.Pending != nil { // comes into force when it starts on the target
		v.settings(kind, cfg.Pending.Settings, &n)
	}
	return n
}

// keptBySnapshots returns the snapshot that keeps each volume, and blocks what
// only snapshots have: an ISO image in a drive is looked for, too.
func (v *EvacView) keptBySnapshots(kind string, cfg *parse.GuestConfig, n *evacNeeds) map[string]string {
	kept := map[string]string{}
	current := map[string]bool{}
	for _, d := range cfg.Current.Disks {
		current[d.Volume] = true
	}
	for _, snap := range cfg.Snapshots {
		disks := snap.Settings.Disks
		if vol := snap.Settings.VMState; vol != "" {
			storage, _, _ := strings.Cut(vol, ":")
			disks = append(slices.Clone(disks), parse.GuestDisk{Key: "vmstate", Kind: parse.DiskVolume, Storage: storage, Volume: vol})
		}
		for _, d := range disks {
			if d.Volume != "" && d.Kind != parse.DiskCDROM && d.Kind != parse.DiskCloudInit {
				kept[d.Volume] = snap.Name
			}
			if !current[d.Volume] && d.Kind != parse.DiskBind && (d.Volume != "" || d.Source != "") {
				current[d.Volume] = true
				v.disk(kind, d, kept[d.Volume], n)
			}
		}
	}
	return kept
}

// disk looks at one disk, mount point or drive; snapshot is the one that keeps
// its volume, or "".
func (v *EvacView) disk(kind string, d parse.GuestDisk, snapshot string, n *evacNeeds) {
	key := Clean(d.Key)
	shared := d.Shared != nil && *d.Shared
	switch {
	case d.Volume == "" && d.Source == "":
		return // an empty drive
	case d.Volume == "" && d.Source == "cdrom":
		n.block("%s is the node's own CD drive", key)
		return
	case d.Volume == "" && shared:
		n.caveats = append(n.caveats, fmt.Sprintf("%s (%s) is marked as shared; that it is on the target is not known", key, Clean(d.Source)))
		return
	case d.Volume == "" && d.Kind == parse.DiskBind && kind == "lxc":
		n.block("%s binds %s of the node and is not marked as shared", key, Clean(d.Source))
		return
	case d.Volume == "":
		n.block("%s is %s of the node", key, Clean(d.Source))
		return
	}
	st := v.storages[d.Storage]
	switch {
	case v.Configs == nil:
		n.block("storages were not read, so where %s lies is not known", key)
		return
	case st == nil:
		n.block("%s is on storage %s, which does not exist", key, Clean(d.Storage))
		return
	case st.Disabled:
		n.block("%s is on storage %s, which is disabled", key, Clean(d.Storage))
		return
	}
	if d.Kind == parse.DiskCDROM && !st.Shared {
		n.block("%s holds %s, which is on this node's storage alone", key, Clean(d.Volume))
		return
	}
	n.storages = appendOnce(n.storages, d.Storage)
	if st.Shared || shared {
		return
	}
	v.localDisk(kind, d, *st, snapshot, n)
}

// cloudInitBytes is what a cloud-init drive takes at most.
const cloudInitBytes = 4 << 20

// localDisk looks at a volume that must be copied.
func (v *EvacView) localDisk(kind string, d parse.GuestDisk, st parse.StorageConfig, snapshot string, n *evacNeeds) {
	key, volume := Clean(d.Key), Clean(d.Volume)
	n.with = true
	size := d.SizeBytes
	if d.Kind == parse.DiskCloudInit {
		size = Ptr(int64(cloudInitBytes))
	}
	_, name, _ := strings.Cut(d.Volume, ":")
	if parent, _, linked := strings.Cut(name, "/vm-"); linked && strings.Contains(parent, "base-") || strings.Contains(name, "/subvol-") && strings.Contains(name, "base") {
		n.block("%s is a linked clone on local storage (%s)", key, volume)
	}
	movable := st.Type == "zfspool" || st.Type == "btrfs" || kind == "qemu" && strings.HasSuffix(name, ".qcow2")
	switch {
	case snapshot != "" && !movable:
		n.block("snapshot %s keeps %s on local storage; snapshots move with local disks only on ZFS, Btrfs or in qcow2 images of a VM", Clean(snapshot), volume)
	case snapshot != "" && kind == "qemu":
		n.noLive = appendOnce(n.noLive, "it has snapshots on local storage")
	}
	if d.Kind == parse.DiskTPM {
		n.noLive = appendOnce(n.noLive, "its TPM state is on local storage")
	}
	if size == nil {
		n.block("the size of %s (%s) is not known, so that it fits on a target is not proven", key, volume)
		return
	}
	n.local[d.Storage] += *size
}

// settings looks at devices, networks and whatever else names something of the
// node.
func (v *EvacView) settings(kind string, s parse.GuestSettings, n *evacNeeds) {
	for _, d := range s.Devices {
		v.device(d, n)
	}
	for _, nic := range s.NICs {
		if nic.Bridge != "" {
			n.bridges = appendOnce(n.bridges, nic.Bridge)
		}
	}
	for _, x := range append([]string{s.HookScript}, optionValues(s.CICustom)...) {
		v.script(x, n)
	}
	if kind == "qemu" {
		machine(s, n)
		return
	}
	raw(s, n)
}

func optionValues(options []parse.Option) []string {
	var out []string
	for _, o := range options {
		out = append(out, o.Value)
	}
	return out
}

// script looks at a snippet: on storage of the node alone it is not known to be
// on the target.
func (v *EvacView) script(volume string, n *evacNeeds) {
	if volume == "" {
		return
	}
	id, _, _ := strings.Cut(volume, ":")
	switch st := v.storages[id]; {
	case st == nil || st.Disabled:
		n.block("it uses %s, whose storage is not usable", Clean(volume))
	case st.Shared:
		n.storages = appendOnce(n.storages, id)
	default:
		n.block("it uses %s, which is on this node's storage alone", Clean(volume))
	}
}

func (v *EvacView) device(d parse.PassedDevice, n *evacNeeds) {
	key, hosts := Clean(d.Key), strings.Join(cleaned(d.Hosts), ", ")
	switch {
	case d.Mapping != "":
		if d.Kind == "virtiofs" {
			d.Kind = "directory"
		}
		n.mappings = append(n.mappings, d)
		m := v.mappings[[2]string{d.Kind, d.Mapping}]
		if m == nil {
			n.block("%s uses mapping %s, which does not exist", key, Clean(d.Mapping))
		}
		if m == nil || d.Kind != "pci" || !m.LiveMigrate {
			n.noLive = appendOnce(n.noLive, fmt.Sprintf("%s uses the mapped device %s", key, Clean(d.Mapping)))
		}
	case d.Kind == "usb" && hosts == "spice", d.Kind == "serial" && hosts == "socket":
	case d.Kind == "virtiofs":
		n.block("%s shares a folder of the node", key)
	default:
		n.block("%s passes %s of the node through", key, hosts)
	}
}

// baselineCPUs start on every 64-bit CPU of the last fifteen years.
var baselineCPUs = []string{"", "kvm32", "kvm64", "qemu32", "qemu64", "486", "pentium", "x86-64-v2", "x86-64-v2-AES"}

// machine looks at what only a VM has.
func machine(s parse.GuestSettings, n *evacNeeds) {
	for _, key := range []struct{ name, what string }{
		{"args", "what it tells QEMU is not read and may name something of the node"},
		{"ivshmem", "it shares memory with something on the node"},
	} {
		if slices.Contains(s.SetKeys, key.name) {
			n.block("%s is set: %s", key.name, key.what)
		}
	}
	if s.AMDSEV != "" {
		n.block("amd-sev is set: it cannot move live, and whether the target's CPU has it is not known")
	}
	if s.IntelTDX != "" {
		n.block("intel-tdx is set: it cannot move live, and whether the target's CPU has it is not known")
	}
	if s.Hugepages != "" {
		n.block("hugepages is set, and whether the target can give them is not known")
	}
	n.vcpus = max(n.vcpus, orOne(s.Cores)*orOne(s.Sockets))
	switch model := Clean(s.CPUType); {
	case model == "host" || model == "max":
		n.noLive = appendOnce(n.noLive, "its CPU type is "+model+", and whether the nodes' CPUs are alike is not known")
	case !slices.Contains(baselineCPUs, s.CPUType):
		n.caveats = appendOnce(n.caveats, "its CPU type is "+model+"; that the target's CPU has it is not known, and if not it keeps running here")
	}
}

func orOne(n *int64) int64 {
	if n == nil {
		return 1
	}
	return min(*n, 1<<20)
}

// raw looks at what only a container has: lines that Proxmox passes on unread.
func raw(s parse.GuestSettings, n *evacNeeds) {
	for _, m := range s.Raw.Mounts {
		n.block("lxc.mount.entry mounts %s of the node", Clean(m.Source))
	}
	if len(s.Raw.IDMaps) > 0 {
		n.block("lxc.idmap is set: the target's /etc/subuid must allow it, which is not read")
	}
	for _, o := range s.Raw.Lines {
		if o.Key == "lxc.seccomp.profile" && o.Value != "" {
			n.block("lxc.seccomp.profile names a file of the node")
		}
	}
	if p := s.Raw.AppArmorProfile; p != "" && p != "unconfined" && p != "generated" && !strings.HasPrefix(p, "lxc-container-default") {
		n.block("lxc.apparmor.profile %s is not known to be on the target", Clean(p))
	}
	for _, nic := range s.Raw.NICs {
		if nic.Link != "" {
			n.bridges = appendOnce(n.bridges, nic.Link)
		}
	}
	for _, key := range s.SetKeys {
		harmless := slices.ContainsFunc([]string{"lxc.environment", "lxc.prlimit.", "lxc.sysctl.", "lxc.init."}, func(p string) bool { return strings.HasPrefix(key, p) })
		if strings.HasPrefix(key, "lxc.") && !harmless {
			n.block("%s is set: what it names on the node is not read", Clean(key))
		}
	}
}
