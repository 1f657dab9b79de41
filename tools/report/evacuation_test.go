package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

var evacNow = time.Date(2026, 11, 29, 17, 0, 0, 0, time.UTC)

// evacFiles are the storages, mappings and HA rules of a cluster of three: the
// node a is emptied, b has all of what a has but the bridge vmbr7, c lacks the
// local storages and is small.
const evacFiles = `/etc/pve/storage.cfg:dir: local
/etc/pve/storage.cfg:	path /var/lib/vz
/etc/pve/storage.cfg:	content iso,snippets,images
/etc/pve/storage.cfg:lvmthin: thin
/etc/pve/storage.cfg:	thinpool data
/etc/pve/storage.cfg:	vgname pve
/etc/pve/storage.cfg:	content images,rootdir
/etc/pve/storage.cfg:	nodes a,b
/etc/pve/storage.cfg:zfspool: tank
/etc/pve/storage.cfg:	pool tank
/etc/pve/storage.cfg:	content images,rootdir
/etc/pve/storage.cfg:	nodes a,b
/etc/pve/storage.cfg:rbd: ceph
/etc/pve/storage.cfg:	pool vm
/etc/pve/storage.cfg:	content images,rootdir
/etc/pve/storage.cfg:nfs: isos
/etc/pve/storage.cfg:	export /isos
/etc/pve/storage.cfg:	path /mnt/pve/isos
/etc/pve/storage.cfg:	server 10.0.0.5
/etc/pve/storage.cfg:	content iso,snippets
/etc/pve/storage.cfg:dir: gone
/etc/pve/storage.cfg:	disable
/etc/pve/storage.cfg:	path /gone
/etc/pve/mapping/pci.cfg:gpu
/etc/pve/mapping/pci.cfg:	map id=10de:1ff2,node=a,path=0000:01:00.0
/etc/pve/mapping/pci.cfg:	map id=10de:1ff2,node=b,path=0000:02:00.0
/etc/pve/mapping/pci.cfg:vgpu
/etc/pve/mapping/pci.cfg:	live-migration-capable 1
/etc/pve/mapping/pci.cfg:	map id=10de:1ff2,node=a,path=0000:01:00.0
/etc/pve/mapping/pci.cfg:	map id=10de:1ff2,node=b,path=0000:02:00.0
/etc/pve/mapping/pci.cfg:only-here
/etc/pve/mapping/pci.cfg:	map id=10de:1ff2,node=a,path=0000:03:00.0
/etc/pve/mapping/directory.cfg:share
/etc/pve/mapping/directory.cfg:	map node=b,path=/srv/share
/etc/pve/replication.cfg:local: 100-0
/etc/pve/replication.cfg:	target c
/etc/pve/replication.cfg:	source a
/etc/pve/ha/resources.cfg:vm: 900
/etc/pve/ha/resources.cfg:	state started
/etc/pve/ha/resources.cfg:vm: 901
/etc/pve/ha/resources.cfg:	state ignored
/etc/pve/ha/resources.cfg:vm: 902
/etc/pve/ha/resources.cfg:	group onlya
/etc/pve/ha/resources.cfg:vm: 903
/etc/pve/ha/resources.cfg:	state started
/etc/pve/ha/resources.cfg:vm: 904
/etc/pve/ha/resources.cfg:	state started
/etc/pve/ha/resources.cfg:vm: 905
/etc/pve/ha/resources.cfg:	state started
/etc/pve/ha/groups.cfg:group: onlya
/etc/pve/ha/groups.cfg:	nodes a
/etc/pve/ha/groups.cfg:	restricted 1
/etc/pve/ha/rules.cfg:node-affinity: stay
/etc/pve/ha/rules.cfg:	nodes a
/etc/pve/ha/rules.cfg:	resources vm:903
/etc/pve/ha/rules.cfg:	strict 1
/etc/pve/ha/rules.cfg:resource-affinity: apart
/etc/pve/ha/rules.cfg:	affinity negative
/etc/pve/ha/rules.cfg:	resources vm:904,vm:300
/etc/pve/ha/rules.cfg:resource-affinity: together
/etc/pve/ha/rules.cfg:	affinity positive
/etc/pve/ha/rules.cfg:	resources vm:905,vm:301
`

const gibi = int64(1) << 30

// evacCluster is a cluster of a, b and c where one guest lives on a.
func evacCluster(t *testing.T, kind string, vmid int, status, config string) EvacView {
	t.Helper()
	configs, err := parse.ParseClusterConfigs([]byte(evacFiles))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := parse.GuestConfigFile(kind, "a", vmid, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	yes, at := true, evacNow.Unix()
	st := &parse.State{
		Members: parse.Members{Node: "a", Cluster: &parse.ClusterInfo{Name: "x", Quorate: &yes}},
		Guests:  []parse.GuestRef{{VMID: vmid, Node: "a", Type: kind}, {VMID: 300, Node: "b", Type: "qemu"}, {VMID: 301, Node: "c", Type: "qemu"}},
		RRD:     parse.RRD{Nodes: map[string]parse.RRDNode{}, Guests: map[int]parse.RRDGuest{}},
	}
	ha := &parse.HAState{Manager: &parse.HAManager{Master: "a", Timestamp: &at}}
	sites := map[string]EvacSite{}
	for _, n := range []struct {
		name     string
		mem      int64
		storages []string
	}{{"a", 64 * gibi, []string{"local", "thin", "tank", "ceph", "isos"}}, {"b", 32 * gibi, []string{"local", "thin", "tank", "ceph", "isos"}}, {"c", 8 * gibi, []string{"local", "ceph", "isos"}}} {
		st.Members.Nodes = append(st.Members.Nodes, parse.Member{Name: n.name, Online: &yes})
		st.RRD.Nodes[n.name] = parse.RRDNode{Node: n.name, Time: &at, Uptime: Ptr(int64(86400)), MemTotal: &n.mem, CPUs: Ptr(int64(8)), ARCSize: Ptr(int64(0))}
		for _, s := range n.storages {
			st.RRD.Storages = append(st.RRD.Storages, parse.RRDStorage{Node: n.name, Storage: s, Time: &at, Total: Ptr(100 * gibi), Used: Ptr(40 * gibi)})
		}
		ha.Manager.Nodes = append(ha.Manager.Nodes, parse.HANodeState{Name: n.name, State: "online"})
		ha.LRMs = append(ha.LRMs, parse.LRM{Node: n.name, Mode: "active", State: "active", Timestamp: &at})
		sites[n.name] = EvacSite{Links: map[string]bool{"vmbr0": true, "lo": true}, Version: "9.1.2"}
	}
	st.RRD.Guests[vmid] = parse.RRDGuest{VMID: vmid, Status: status}
	for _, id := range []int{300, 301} {
		st.RRD.Guests[id] = parse.RRDGuest{VMID: id, Status: "running", MemMax: Ptr(2 * gibi)}
	}
	return EvacView{
		Cluster: ClusterView{State: st, Configs: []parse.GuestConfig{cfg}}, Node: "a", Version: "9.1.2", Configs: configs, HA: ha, Sites: sites, Now: evacNow,
	}
}

func TestEveryBlockerOfAnEvacuation(t *testing.T) {
	const vm = "memory: 2048\nnet0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nscsi0: ceph:vm-100-disk-0,size=8G\n"
	const ct = "hostname: x\nmemory: 1024\nnet0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,type=veth\nrootfs: ceph:vm-100-disk-0,size=8G\n"
	const snap = "parent: s\n[s]\nsnaptime: 1790000000\n"
	for _, c := range []struct {
		name, kind, status, config string
		vmid                       int
		change                     func(v *EvacView)
		action, target, why        string // why: a part of the reason
	}{
		{name: "a VM on shared storage", config: vm, action: "live", target: "b", why: "shared storage"},
		{name: "a stopped VM", status: "stopped", config: vm, action: "offline", target: "b", why: "does not run"},
		{name: "a running container", kind: "lxc", config: ct, action: "restart", target: "b"},
		{name: "a stopped container", kind: "lxc", status: "stopped", config: ct, action: "offline", target: "b"},
		{name: "a VM without memory in its file", config: "scsi0: ceph:vm-100-disk-0,size=8G\n", action: "live", target: "b"},
		{name: "a VM without a disk", config: "memory: 512\n", action: "live", target: "b"},

		{name: "a PCI device", config: vm + "hostpci0: 0000:01:00,pcie=1\n", action: "blocked", why: "hostpci0 passes 0000:01:00"},
		{name: "a USB device", config: vm + "usb0: host=10c4:ea60\n", action: "blocked", why: "usb0 passes 10c4:ea60"},
		{name: "a USB redirection", config: vm + "usb0: spice\n", action: "live", target: "b"},
		{name: "a serial port of the node", config: vm + "serial0: /dev/ttyUSB0\n", action: "blocked", why: "serial0 passes /dev/ttyUSB0"},
		{name: "a serial socket", config: vm + "serial0: socket\n", action: "live", target: "b"},
		{name: "a parallel port", config: vm + "parallel0: /dev/parport0\n", action: "blocked", why: "parallel0"},
		{name: "a mapped device", config: vm + "hostpci0: mapping=gpu\n", action: "offline", target: "b", why: "mapped device gpu"},
		{name: "a mapped device that can move live", config: vm + "hostpci0: mapping=vgpu\n", action: "live", target: "b"},
		{name: "a mapping without a device on any target", config: vm + "hostpci0: mapping=only-here\n", action: "blocked", why: "b, c: mapping only-here has nothing there"},
		{name: "a mapping that does not exist", config: vm + "usb0: mapping=nothing\n", action: "blocked", why: "mapping nothing, which does not exist"},
		{name: "a shared folder", config: vm + "virtiofs0: share\n", action: "offline", target: "b", why: "mapped device share"},
		{name: "shared memory", config: vm + "ivshmem:\n", action: "blocked", why: "ivshmem is set"},
		{name: "arguments for QEMU", config: vm + "args:\n", action: "blocked", why: "args is set"},
		{name: "encrypted memory", config: vm + "amd-sev: std\n", action: "blocked", why: "amd-sev"},
		{name: "TDX", config: vm + "intel-tdx: 1\n", action: "blocked", why: "intel-tdx"},
		{name: "huge pages", config: vm + "hugepages: 1024\n", action: "blocked", why: "hugepages"},
		{name: "CPU type host", config: vm + "cpu: host,flags=+aes\n", action: "offline", target: "b", why: "CPU type is host"},
		{name: "CPU type host, stopped", status: "stopped", config: vm + "cpu: host\n", action: "offline", target: "b", why: "does not run"},
		{name: "a CPU type that the target may not have", config: vm + "cpu: x86-64-v4\n", action: "live", target: "b", why: "x86-64-v4; that the target's CPU has it is not known"},
		{name: "as many CPUs as the target", config: vm + "cores: 4\nsockets: 2\n", action: "live", target: "b"},
		{name: "more CPUs than the target", config: vm + "cores: 9\n", action: "blocked", why: "b, c: it has 8 CPUs, and a VM with 9"},
		{name: "a hook script on local storage", config: vm + "hookscript: local:snippets/h.pl\n", action: "blocked", why: "local:snippets/h.pl"},
		{name: "a hook script on shared storage", config: vm + "hookscript: isos:snippets/h.pl\n", action: "live", target: "b"},
		{name: "cloud-init from a local snippet", config: vm + "cicustom: user=local:snippets/u.yaml\n", action: "blocked", why: "local:snippets/u.yaml"},

		{name: "a local ISO", config: vm + "ide2: local:iso/d.iso,media=cdrom\n", action: "blocked", why: "ide2 holds local:iso/d.iso"},
		{name: "a local ISO in a snapshot", config: vm + snap + "ide2: local:iso/d.iso,media=cdrom\n", action: "blocked", why: "ide2 holds local:iso/d.iso"},
		{name: "a shared ISO", config: vm + "ide2: isos:iso/d.iso,media=cdrom\n", action: "live", target: "b"},
		{name: "an empty drive", config: vm + "ide2: none,media=cdrom\n", action: "live", target: "b"},
		{name: "the node's drive", config: vm + "ide2: cdrom,media=cdrom\n", action: "blocked", why: "CD drive"},
		{name: "a cloud-init drive on local storage", config: vm + "ide2: thin:vm-100-cloudinit,media=cdrom\n", action: "live", target: "b", why: "local disks are copied"},
		{name: "a local disk", config: vm + "scsi1: thin:vm-100-disk-1,size=20G\n", action: "live", target: "b", why: "local disks are copied"},
		{name: "a local disk that fits nowhere", config: vm + "scsi1: thin:vm-100-disk-1,size=200G\n", action: "blocked", why: "storage thin has 60.0 GiB left for 200.0 GiB"},
		{name: "a local disk of unknown size", config: vm + "unused0: thin:vm-100-disk-1\n", action: "blocked", why: "size of unused0"},
		{name: "a local disk with a replica that is too large otherwise", config: vm + "scsi1: local:100/vm-100-disk-1.qcow2,size=200G\n", action: "live", target: "c", why: "local disks"},
		{name: "a raw disk", config: vm + "scsi1: /dev/disk/by-id/x,size=10G\n", action: "blocked", why: "scsi1 is /dev/disk/by-id/x"},
		{name: "a snapshot on LVM", config: vm + "scsi1: thin:vm-100-disk-1,size=20G\n" + snap + "scsi1: thin:vm-100-disk-1,size=20G\n", action: "blocked", why: "snapshot s keeps thin:vm-100-disk-1"},
		{name: "a snapshot on ZFS", config: vm + "scsi1: tank:vm-100-disk-1,size=20G\n" + snap + "scsi1: tank:vm-100-disk-1,size=20G\n", action: "offline", target: "b", why: "snapshots on local storage"},
		{name: "a snapshot in qcow2", config: vm + "scsi1: local:100/vm-100-disk-1.qcow2,size=20G\n" + snap + "scsi1: local:100/vm-100-disk-1.qcow2,size=20G\n", action: "offline", target: "c", why: "snapshots on local storage"},
		{name: "a snapshot on shared storage", config: vm + snap + "scsi0: ceph:vm-100-disk-0,size=8G\n", action: "live", target: "b"},
		{name: "a snapshot's memory on LVM", config: vm + snap + "vmstate: thin:vm-100-state-s\n", action: "blocked", why: "thin:vm-100-state-s"},
		{name: "a linked clone on local storage", config: vm + "scsi1: tank:base-90-disk-0/vm-100-disk-1,size=20G\n", action: "blocked", why: "linked clone"},
		{name: "a local TPM", config: vm + "tpmstate0: thin:vm-100-disk-1,size=4M,version=v2.0\n", action: "offline", target: "b", why: "TPM"},
		{name: "a local EFI disk", config: vm + "efidisk0: thin:vm-100-disk-1,size=4M\n", action: "live", target: "b"},
		{name: "a storage that does not exist", config: vm + "scsi1: nowhere:vm-100-disk-1,size=1G\n", action: "blocked", why: "nowhere, which does not exist"},
		{name: "a disabled storage", config: vm + "scsi1: gone:vm-100-disk-1,size=1G\n", action: "blocked", why: "gone, which is disabled"},
		{name: "a storage that is not active on the targets", config: vm, change: func(v *EvacView) { v.Cluster.State.RRD.Storages = nil }, action: "blocked", why: "storage ceph is not active there"},

		{name: "a bridge that no target has", config: "net0: virtio=BC:24:11:00:00:01,bridge=vmbr7\nscsi0: ceph:vm-100-disk-0,size=8G\n", action: "blocked", why: "b, c: no bridge vmbr7"},
		{name: "a bridge that waits for the next start", config: vm + "[PENDING]\nnet0: virtio=BC:24:11:00:00:01,bridge=vmbr7\n", action: "blocked", why: "no bridge vmbr7"},
		{name: "targets that could not be asked", config: vm, change: func(v *EvacView) { v.Sites = map[string]EvacSite{"b": {NotAsked: "no answer"}} }, action: "blocked", why: "bridge vmbr0 not proven: no answer"},
		{name: "no network needs no bridge", config: "scsi0: ceph:vm-100-disk-0,size=8G\n", change: func(v *EvacView) { v.Sites = nil }, action: "live", target: "b"},

		{name: "a bind mount", kind: "lxc", config: ct + "mp0: /srv/media,mp=/media\n", action: "blocked", why: "mp0 binds /srv/media"},
		{name: "a bind mount marked as shared", kind: "lxc", config: ct + "mp0: /srv/media,mp=/media,shared=1\n", action: "restart", target: "b", why: "marked as shared"},
		{name: "a device in a container", kind: "lxc", config: ct + "dev0: /dev/dri/renderD128\n", action: "blocked", why: "dev0 passes /dev/dri/renderD128"},
		{name: "a raw mount", kind: "lxc", config: ct + "lxc.mount.entry: /dev/net/tun dev/net/tun none\n", action: "blocked", why: "mounts /dev/net/tun"},
		{name: "a raw ID map", kind: "lxc", config: ct + "lxc.idmap: u 0 100000 1005\n", action: "blocked", why: "subuid"},
		{name: "a raw network", kind: "lxc", config: ct + "lxc.net.1.type: veth\nlxc.net.1.link: vmbr7\n", action: "blocked", why: "no bridge vmbr7"},
		{name: "a raw hook", kind: "lxc", config: ct + "lxc.hook.pre-start:\n", action: "blocked", why: "lxc.hook.pre-start"},
		{name: "an unconfined container", kind: "lxc", config: ct + "lxc.apparmor.profile: unconfined\n", action: "restart", target: "b"},
		{name: "a container's snapshot on LVM", kind: "lxc", config: ct + "mp0: thin:vm-100-disk-1,mp=/d,size=1G\n" + snap + "mp0: thin:vm-100-disk-1,mp=/d,size=1G\n", action: "blocked", why: "snapshot s keeps"},
		{name: "a container's snapshot on ZFS", kind: "lxc", config: ct + "mp0: tank:subvol-100-disk-1,mp=/d,size=1G\n" + snap + "mp0: tank:subvol-100-disk-1,mp=/d,size=1G\n", action: "restart", target: "b"},

		{name: "a template on shared storage", status: "stopped", config: vm + "template: 1\n", action: "offline", target: "b", why: "template"},
		{name: "a template on local storage", status: "stopped", config: "scsi0: thin:base-100-disk-0,size=8G\ntemplate: 1\n", action: "stays", why: "template"},
		{name: "a lock without a task", config: vm + "lock: backup\n", action: "blocked", why: "locked (backup) and no task runs"},
		{name: "a lock with its task", config: vm + "lock: backup\n", change: running("vzdump", ""), action: "wait", target: "b", why: "vzdump"},
		{name: "a task without a lock", config: vm, change: running("qmstart", "100"), action: "wait", target: "b", why: "qmstart"},
		{name: "another guest's task", config: vm, change: running("qmstart", "300"), action: "live", target: "b"},
		{name: "a task and a blocker", config: vm + "args:\n", change: running("vzdump", "100"), action: "blocked", why: "a task runs"},
		{name: "a lock, tasks not read", config: vm + "lock: snapshot\n", change: func(v *EvacView) { v.TasksNotRead = "no answer" }, action: "blocked", why: "tasks could not be read"},
		{name: "suspended to disk", status: "stopped", config: vm + "lock: suspended\nvmstate: ceph:vm-100-state-suspend\n", action: "blocked", why: "suspended to disk"},
		{name: "a paused VM", status: "paused", config: vm, action: "blocked", why: "state paused"},
		{name: "an unknown state", status: "unknown", config: vm, action: "blocked", why: "state is not known"},
		{name: "a line that cannot be read", config: vm + "!!\n", action: "blocked", why: "1 line"},

		{name: "under HA", vmid: 900, config: vm, action: "ha", why: "HA moves it"},
		{name: "ignored by HA", vmid: 901, config: vm, action: "live", target: "b"},
		{name: "a restricted HA group", vmid: 902, config: vm, action: "blocked", why: "not in the HA group onlya"},
		{name: "a strict HA rule", vmid: 903, config: vm, action: "blocked", why: "not in the strict HA rule stay"},
		{name: "an HA rule that keeps apart leaves c", vmid: 904, config: vm, action: "ha"},
		{name: "an HA rule that keeps apart, too large for c", vmid: 904, config: strings.Replace(vm, "2048", "16384", 1), action: "blocked", why: "keeps it apart from vm:300"},
		{name: "an HA rule that keeps together leaves c", vmid: 905, config: vm, action: "ha"},
		{name: "an HA rule that keeps together, too large for c", vmid: 905, config: strings.Replace(vm, "2048", "16384", 1), action: "blocked", why: "keeps it with vm:301"},
		{name: "under HA, local managers dead", vmid: 900, config: vm, change: func(v *EvacView) {
			for i := range v.HA.LRMs[1:] {
				v.HA.LRMs[i+1].Timestamp = Ptr(evacNow.Unix() - 121)
			}
		}, action: "blocked", why: "b, c: its HA manager does not report"},
		{name: "under HA, the node's own local manager dead", vmid: 900, config: vm, change: func(v *EvacView) {
			v.HA.LRMs[0].Timestamp = Ptr(evacNow.Unix() - 121)
		}, action: "blocked", why: "local HA manager of a does not report"},
		{name: "under HA with a blocker", vmid: 900, config: vm + "hostpci0: 01:00.0\n", action: "blocked", why: "under HA, which would try"},
		{name: "under HA whose manager is dead", vmid: 900, config: vm, change: func(v *EvacView) { v.HA.Manager.Timestamp = Ptr(int64(1)) }, action: "blocked", why: "HA manager does not report"},
		{name: "under HA in error", vmid: 900, config: vm, change: func(v *EvacView) {
			v.HA.Manager.Services = []parse.HAService{{SID: "vm:900", Node: "a", State: "error"}}
		}, action: "blocked", why: "state error"},

		{name: "b in maintenance", config: vm, change: func(v *EvacView) { v.HA.LRMs[1].Mode = "maintenance" }, action: "live", target: "c"},
		{name: "HA says that b is in maintenance", config: vm, change: func(v *EvacView) { v.HA.Manager.Nodes[1].State = "maintenance" }, action: "live", target: "c"},
		{name: "a storage that is not for c, although reported there", config: strings.Replace(vm, "ceph", "tank", 1), change: func(v *EvacView) {
			v.Cluster.State.RRD.Storages = append(v.Cluster.State.RRD.Storages, parse.RRDStorage{Node: "c", Storage: "tank", Total: Ptr(100 * gibi), Used: Ptr(int64(0))})
			v.Cluster.State.Members.Nodes[1].Online = Ptr(false)
		}, action: "blocked", why: "c: storage tank is not for it"},
		{name: "b offline", config: vm, change: func(v *EvacView) { v.Cluster.State.Members.Nodes[1].Online = Ptr(false) }, action: "live", target: "c"},
		{name: "b older", config: vm, change: func(v *EvacView) { v.Sites["b"] = EvacSite{Links: v.Sites["b"].Links, Version: "8.4.14"} }, action: "live", target: "c"},
		{name: "HA's state was not read", config: vm, change: func(v *EvacView) { v.HA = nil }, action: "blocked", why: "maintenance is not known"},
		{name: "too large for b and c", config: strings.Replace(vm, "2048", "40960", 1), action: "blocked", why: "no room: it needs 40.0 GiB of memory, the most that a node has left is 30.0 GiB"},
		{name: "fits to the byte", config: strings.Replace(vm, "2048", "30720", 1), action: "live", target: "b"},
		{name: "one MiB too much", config: strings.Replace(vm, "2048", "30721", 1), action: "blocked", why: "no room"},
		{name: "too large at its next start", config: vm + "[PENDING]\nmemory: 40960\n", action: "blocked", why: "no room"},
		{name: "no quorum", config: vm, change: func(v *EvacView) { v.Cluster.State.Members.Cluster.Quorate = Ptr(false) }, action: "blocked", why: "no quorum"},
		{name: "configuration not read", config: vm, change: func(v *EvacView) { v.Cluster.Configs = nil }, action: "blocked", why: "configuration was not read"},
		{name: "storages not read", config: vm, change: func(v *EvacView) { v.Configs = nil }, action: "blocked", why: "storages were not read"},
		{name: "a lone node", config: vm, change: func(v *EvacView) { v.Lone = true }, action: "stays", why: "lone node"},

		{name: "the node is off, shared disks", config: vm, change: off, action: "offline", target: "b", why: "taken over"},
		{name: "the node is off, local disks", config: vm + "scsi1: thin:vm-100-disk-1,size=20G\n", change: off, action: "blocked", why: "which is off"},
		{name: "the node is off, under HA", vmid: 900, config: vm, change: off, action: "ha", why: "fenced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.kind == "" {
				c.kind = "qemu"
			}
			if c.status == "" {
				c.status = "running"
			}
			if c.vmid == 0 {
				c.vmid = 100
			}
			v := evacCluster(t, c.kind, c.vmid, c.status, c.config)
			if c.change != nil {
				c.change(&v)
			}
			p := Judge{}.PlanEvacuation(v)
			if len(p.Guests) != 1 {
				t.Fatalf("got %d guests", len(p.Guests))
			}
			g := p.Guests[0]
			if g.Action != c.action || g.Target != c.target || !strings.Contains(g.Reason, c.why) || g.Reason == "" {
				t.Errorf("got %s to %q because %q, want %s to %q because … %s …", g.Action, g.Target, g.Reason, c.action, c.target, c.why)
			}
			blocked := 0
			for _, f := range p.Findings {
				if f.Code == "EVAC_BLOCKED" {
					blocked++
				}
				if f.Code == "EVAC_NO_ROOM" && !strings.Contains(g.Reason, "no room") {
					t.Error("EVAC_NO_ROOM without a want of room")
				}
			}
			if (blocked == 1) != (g.Action == "blocked") {
				t.Errorf("%d findings EVAC_BLOCKED for action %s", blocked, g.Action)
			}
			held(t, p)
		})
	}
}

func off(v *EvacView) {
	v.Cluster.State.Members.Nodes[0].Online = Ptr(false)
	v.Cluster.State.Members.Node = "b"
}

func running(kind, id string) func(v *EvacView) {
	return func(v *EvacView) {
		task := parse.Task{UPID: parse.UPID{Node: "a", Start: evacNow.Unix() - 60, Type: kind, ID: id}, Class: parse.TaskRunning}
		if id != "" {
			task.VMID = new(int)
			fmt.Sscan(id, task.VMID)
		}
		v.Tasks = []parse.Task{task}
	}
}

// held is the law of every plan: no target gets more than it has, none is one
// that says why it is none, and what runs and is not moved stands in down.
func held(t *testing.T, p EvacuationPlan) {
	t.Helper()
	free, target := map[string]int64{}, map[string]bool{}
	for _, n := range p.Nodes {
		target[n.Node] = n.Target
		if n.Target != (n.Reason == "") {
			t.Errorf("%s: target %v with reason %q", n.Node, n.Target, n.Reason)
		}
		if n.MemoryTotalBytes != nil {
			free[n.Node] = *n.MemoryTotalBytes - *n.ReservedBytes
		}
	}
	sum := 0
	for _, g := range p.Guests {
		if g.Target != "" {
			if !target[g.Target] {
				t.Errorf("guest %d goes to %s, which is no target", g.VMID, g.Target)
			}
			if g.MemoryBytes != nil && g.runs {
				free[g.Target] -= *g.MemoryBytes
				if free[g.Target] < 0 {
					t.Errorf("%s gets more than it has", g.Target)
				}
			}
		}
		if g.Action == EvacBlocked && (g.Target != "" || len(g.why) == 0) {
			t.Errorf("guest %d is blocked with target %q and %d reasons", g.VMID, g.Target, len(g.why))
		}
	}
	s := p.Summary
	if sum = s.Live + s.Restart + s.Offline + s.HA + s.Stays + s.Wait + s.Blocked; sum != s.Guests || sum != len(p.Guests) {
		t.Errorf("the summary counts %d of %d guests", sum, len(p.Guests))
	}
	for i, step := range p.Steps {
		if step.Step != i+1 || step.Command == "" && step.Note == "" {
			t.Errorf("step %d: %+v", i, step)
		}
	}
}

func TestLargestGuestsAreFirstAndLimitsHold(t *testing.T) {
	v := evacCluster(t, "qemu", 100, "running", "memory: 8192\n")
	for i, mib := range []int{16384, 8192, 4096, 6144, 1024} {
		vmid := 110 + i
		cfg, err := parse.GuestConfigFile("qemu", "a", vmid, fmt.Appendf(nil, "memory: %d\n", mib))
		if err != nil {
			t.Fatal(err)
		}
		v.Cluster.Configs = append(v.Cluster.Configs, cfg)
		v.Cluster.State.Guests = append(v.Cluster.State.Guests, parse.GuestRef{VMID: vmid, Node: "a", Type: "qemu"})
		v.Cluster.State.RRD.Guests[vmid] = parse.RRDGuest{VMID: vmid, Status: "running"}
	}
	p := Judge{}.PlanEvacuation(v)
	got := map[int]string{}
	for _, g := range p.Guests {
		got[g.VMID] = g.Action + " " + g.Target
	}
	// b has 30 GiB left, c 6: 16 to b, 8 to b, then 6 to b or c, as both have 6.
	want := map[int]string{100: "live b", 110: "live b", 111: "blocked ", 112: "live c", 113: "live b", 114: "live c"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if p.Findings[0].Code != "EVAC_NO_ROOM" || p.Possible != "no" {
		t.Errorf("first finding %s, possible %s", p.Findings[0].Code, p.Possible)
	}
	held(t, p)
}

func TestLossOfOneNode(t *testing.T) {
	votes := &parse.Corosync{Nodes: []parse.CorosyncNode{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	vm := func(mib int) string { return fmt.Sprintf("memory: %d\nscsi0: ceph:vm-100-disk-0,size=8G\n", mib) }
	for _, c := range []struct {
		name   string
		config string
		change func(v *EvacView)
		want   map[string]string
	}{
		{"fits", vm(4096), nil, map[string]string{"a": "yes", "b": "yes", "c": "yes"}},
		{"a's guest fits nowhere whole", vm(32768), nil, map[string]string{"a": "no", "b": "yes", "c": "yes"}},
		{"the others are full", vm(62 * 1024), nil, map[string]string{"a": "no", "b": "yes", "c": "yes"}},
		{"two guests that fit in sum, not in pieces", vm(18 * 1024), func(v *EvacView) {
			v.Cluster.State.Guests = append(v.Cluster.State.Guests, parse.GuestRef{VMID: 302, Node: "a", Type: "qemu"})
			v.Cluster.State.RRD.Guests[302] = parse.RRDGuest{VMID: 302, Status: "running", MemMax: Ptr(17 * gibi)}
		}, map[string]string{"a": "unknown", "b": "yes", "c": "yes"}},
		{"b offline", vm(4096), func(v *EvacView) { v.Cluster.State.Members.Nodes[1].Online = Ptr(false) }, map[string]string{"a": "yes", "b": "unknown", "c": "yes"}},
		{"b's memory unknown", vm(8192), func(v *EvacView) { delete(v.Cluster.State.RRD.Nodes, "b") }, map[string]string{"a": "unknown", "b": "yes", "c": "yes"}},
		{"b in maintenance", vm(8192), func(v *EvacView) { v.HA.Manager.Nodes[1].State = "maintenance" }, map[string]string{"a": "no", "b": "yes", "c": "yes"}},
		{"a guest's memory unknown", vm(4096), func(v *EvacView) {
			v.Cluster.State.RRD.Guests[300] = parse.RRDGuest{VMID: 300, Status: "running"}
		}, map[string]string{"a": "yes", "b": "unknown", "c": "yes"}},
		{"a lone node", vm(4096), func(v *EvacView) {
			v.Lone = true
			v.Cluster.State.Members = parse.Members{Node: "a"}
		}, map[string]string{"a": "no"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := evacCluster(t, "qemu", 100, "running", c.config)
			v.Corosync = votes
			if c.change != nil {
				c.change(&v)
			}
			got := map[string]string{}
			for _, l := range (Judge{}).PlanEvacuation(v).NMinus1 {
				got[l.Node] = l.Fits
				if l.Reason == "" {
					t.Errorf("%s: no reason", l.Node)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	v := evacCluster(t, "qemu", 100, "running", vm(1024))
	v.Corosync = votes
	for _, l := range (Judge{}).PlanEvacuation(v).NMinus1 {
		if l.KeepsQuorum == nil || !*l.KeepsQuorum {
			t.Errorf("%s: three votes keep their quorum without one", l.Node)
		}
	}
}

// TestLossKeepsQuorum holds the plan against what cluster_health says of the
// same votes.
func TestLossKeepsQuorum(t *testing.T) {
	nodes := func(names ...string) *parse.Corosync {
		c := &parse.Corosync{}
		for _, n := range names {
			c.Nodes = append(c.Nodes, parse.CorosyncNode{Name: n})
		}
		return c
	}
	device := func(c *parse.Corosync, algorithm string) *parse.Corosync {
		c.QDevice = &parse.CorosyncQDevice{Model: "net", Algorithm: algorithm}
		return c
	}
	two := nodes("a", "b")
	two.TwoNode = Ptr(true)
	for _, c := range []struct {
		name string
		in   *parse.Corosync
		off  string
		want string // of the loss of a
	}{
		{"two votes", nodes("a", "b"), "", "no"},
		{"two_node", two, "", "yes"},
		{"two_node, the other one off", two, "b", "no"},
		{"two and a device", device(nodes("a", "b"), "ffsplit"), "", "unknown"},
		{"four and a device, one off", device(nodes("a", "b", "c", "d"), "ffsplit"), "d", "unknown"},
		{"four and a device", device(nodes("a", "b", "c", "d"), "ffsplit"), "", "yes"},
		{"four and a device, two off", device(nodes("a", "b", "c", "d"), "ffsplit"), "cd", "no"},
		{"last man standing", device(nodes("a", "b", "c"), "lms"), "", "unknown"},
		{"three", nodes("a", "b", "c"), "", "yes"},
		{"three, one off", nodes("a", "b", "c"), "c", "no"},
		{"not in the file", nodes("b", "c"), "", "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := &parse.State{Members: parse.Members{Node: "x", Cluster: &parse.ClusterInfo{}}}
			for _, n := range c.in.Nodes {
				st.Members.Nodes = append(st.Members.Nodes, parse.Member{Name: n.Name, Online: Ptr(!strings.Contains(c.off, n.Name))})
			}
			v := EvacView{Cluster: ClusterView{State: st}, Corosync: c.in}
			if got := YesNo(v.keepsQuorum("a")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestZFSCacheMinimumIsReserved(t *testing.T) {
	v := evacCluster(t, "qemu", 100, "running", "memory: 1024\n")
	site := v.Sites["b"]
	site.Proc = &parse.NodeProc{ARC: &parse.ARC{Size: Ptr(8 * gibi), Min: Ptr(3 * gibi)}}
	v.Sites["b"] = site
	v.Cluster.State.RRD.Nodes["c"] = parse.RRDNode{Node: "c", Time: Ptr(evacNow.Unix()), MemTotal: Ptr(8 * gibi), ARCSize: Ptr(2 * gibi)}
	p := Judge{}.PlanEvacuation(v)
	if n := p.Nodes[0]; *n.ReservedBytes != 5*gibi || n.ZFSCacheMinAssumed {
		t.Errorf("b: %d reserved, want the 2 GiB of its guest and 3 GiB of cache", *n.ReservedBytes)
	}
	if n := p.Nodes[1]; *n.ZFSCacheMinBytes != 8*gibi/32 || !n.ZFSCacheMinAssumed {
		t.Errorf("c: %d bytes of cache, want a thirty-second of its memory, assumed", *n.ZFSCacheMinBytes)
	}
}
