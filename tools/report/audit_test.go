package report

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// aGuest is a guest with a configuration in the words of its file.
func aGuest(t *testing.T, kind string, vmid int, status, conf string) AuditGuest {
	t.Helper()
	c, err := parse.GuestConfigFile(kind, "n", vmid, []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	return AuditGuest{Guest: Guest{VMID: vmid, Type: kind, Node: "n", Status: status, Name: fmt.Sprint("g", vmid), Template: c.Current.Template, Lock: c.Current.Lock}, Config: &c}
}

const good = "agent: 1\ncpu: host\nonboot: 1\nscsi0: lvm:vm-100-disk-0,size=4G\n"

func TestAuditGuest(t *testing.T) {
	links := []parse.Link{{Name: "vmbr0"}}
	for _, tt := range []struct {
		name, kind, status, conf string
		change                   func(*AuditFacts)
		want                     []string
	}{
		{"nothing", "qemu", Running, good, nil, []string{}},
		{"kvm64 by default", "qemu", Running, strings.Replace(good, "cpu: host\n", "", 1), nil, []string{"GUEST_CPU_TYPE_KVM64"}},
		{"flags alone leave kvm64", "qemu", Running, strings.Replace(good, "cpu: host", "cpu: flags=+aes", 1), nil, []string{"GUEST_CPU_TYPE_KVM64"}},
		{"an ARM guest has no kvm64", "qemu", Running, strings.Replace(good, "cpu: host", "arch: aarch64", 1), nil, []string{}},
		{"agent off", "qemu", Running, strings.Replace(good, "agent: 1", "agent: 0", 1), nil, []string{"GUEST_AGENT_OFF"}},
		{"a template needs no agent", "qemu", Stopped, "template: 1\ncpu: host\n", nil, []string{}},
		{"IDE disk, and a CD drive that is none", "qemu", Running, good + "ide0: lvm:vm-100-disk-1,size=1G\nide2: none,media=cdrom\n", nil, []string{"GUEST_DISK_IDE"}},
		{"an ISO, and cloud-init which is none", "qemu", Running, good + "ide2: local:iso/x.iso,media=cdrom\nide3: lvm:vm-100-cloudinit,media=cdrom\n", nil, []string{"ISO_LEFT_MOUNTED"}},
		{"detached", "qemu", Running, good + "unused0: lvm:vm-100-disk-9\n", nil, []string{"UNUSED_DISK"}},
		{"stopped although it starts with its node", "qemu", Stopped, good, nil, []string{"GUEST_STOPPED_ONBOOT"}},
		{"hibernated", "qemu", Stopped, good + "lock: suspended\nvmstate: lvm:vm-100-state-suspend\n", nil, []string{"GUEST_LOCKED"}},
		{"HA wants it stopped", "qemu", Stopped, good, func(v *AuditFacts) { v.HA = []parse.HAResource{{VMID: 100, State: "stopped"}} }, []string{}},
		{"HA wants it started", "qemu", Stopped, strings.Replace(good, "onboot: 1\n", "", 1), func(v *AuditFacts) { v.HA = []parse.HAResource{{VMID: 100}} }, []string{"GUEST_STOPPED_ONBOOT"}},
		{"runs, but not after a boot", "qemu", Running, strings.Replace(good, "onboot: 1\n", "", 1), nil, []string{"GUEST_NO_ONBOOT"}},
		{"HA starts it", "qemu", Running, strings.Replace(good, "onboot: 1\n", "", 1), func(v *AuditFacts) { v.HA = []parse.HAResource{{VMID: 100}} }, []string{}},
		{"state unknown", "qemu", Unknown, strings.Replace(good, "onboot: 1\n", "", 1), nil, []string{}},
		{"paused", "qemu", "paused", good, nil, []string{"GUEST_PAUSED"}},
		{"I/O error", "qemu", "io-error", good, nil, []string{"GUEST_IO_ERROR"}},
		{"user-mode network", "qemu", Running, good + "net0: virtio=BC:24:11:00:00:01\n", nil, []string{"NET_NO_BRIDGE"}},
		{"a bridge that is not there", "qemu", Running, good + "net0: virtio=BC:24:11:00:00:01,bridge=vmbr7\n", nil, []string{"NET_BRIDGE_MISSING"}},
		{"bridges were not read", "qemu", Running, good + "net0: virtio=BC:24:11:00:00:01,bridge=vmbr7\n", func(v *AuditFacts) { v.Nodes = map[string]AuditNode{} }, []string{}},
		{"unplugged", "qemu", Running, good + "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0,link_down=1\n", nil, []string{"NET_LINK_DOWN"}},
		{"excluded", "qemu", Running, good + "scsi1: lvm:vm-100-disk-1,backup=0,size=1G\n", nil, []string{"BACKUP_DISK_EXCLUDED"}},
		{"an unprivileged container", "lxc", Running, "onboot: 1\nunprivileged: 1\nfeatures: nesting=1\n", nil, []string{}},
		{"privileged", "lxc", Running, "onboot: 1\n", nil, []string{"CT_PRIVILEGED"}},
		{"privileged with nesting, said once", "lxc", Running, "onboot: 1\nfeatures: nesting=1\n", nil, []string{"CT_PRIVILEGED_NESTING"}},
		{"unconfined", "lxc", Running, "onboot: 1\nunprivileged: 1\nlxc.apparmor.profile: unconfined\n", nil, []string{"CT_APPARMOR_OFF"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := AuditFacts{Guests: []AuditGuest{aGuest(t, tt.kind, 100, tt.status, tt.conf)}, Nodes: map[string]AuditNode{"n": {Links: links, TasksRead: true}}, Now: healthNow}
			if tt.change != nil {
				tt.change(&v)
			}
			got := []string{}
			for _, f := range Findings(Judge{}.Audit(v)...) {
				got = append(got, f.Code)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestTwice(t *testing.T) {
	nic := func(mac, bridge, vlan, ip string) string {
		s := "onboot: 1\nunprivileged: 1\nnet0: name=eth0,hwaddr=" + mac + ",bridge=" + bridge
		if vlan != "" {
			s += ",tag=" + vlan
		}
		if ip != "" {
			s += ",ip=" + ip
		}
		return s + "\n"
	}
	const a, b = "BC:24:11:00:00:0A", "BC:24:11:00:00:0B"
	type guest struct{ status, conf string }
	for _, tt := range []struct {
		name   string
		guests []guest
		want   []string
	}{
		{"different", []guest{{Running, nic(a, "vmbr0", "", "10.0.0.1/24")}, {Running, nic(b, "vmbr0", "", "10.0.0.2/24")}}, []string{}},
		{"address, both live", []guest{{Running, nic(a, "vmbr0", "", "10.0.0.1/24")}, {Running, nic(b, "vmbr0", "", "10.0.0.1/16")}}, []string{"critical IP_DUPLICATE guest/100"}},
		{"address, one stopped", []guest{{Running, nic(a, "vmbr0", "", "10.0.0.1/24")}, {Stopped, nic(b, "vmbr0", "", "10.0.0.1/24")}}, []string{"warning IP_DUPLICATE guest/100"}},
		{"address on another VLAN", []guest{{Running, nic(a, "vmbr0", "10", "10.0.0.1/24")}, {Running, nic(b, "vmbr0", "20", "10.0.0.1/24")}}, []string{}},
		{"address on another bridge", []guest{{Running, nic(a, "vmbr0", "", "10.0.0.1/24")}, {Running, nic(b, "vmbr1", "", "10.0.0.1/24")}}, []string{}},
		{"address of a template", []guest{{Running, nic(a, "vmbr0", "", "10.0.0.1/24")}, {Stopped, "template: 1\n" + nic(b, "vmbr0", "", "10.0.0.1/24")}}, []string{}},
		{"address of the node", []guest{{Running, nic(a, "vmbr0", "", "10.0.0.99/24")}}, []string{"critical IP_DUPLICATE guest/100"}},
		{"MAC, both live", []guest{{Running, nic(a, "vmbr0", "", "")}, {Running, nic(a, "vmbr0", "", "")}}, []string{"critical MAC_DUPLICATE guest/100"}},
		{"MAC, one stopped", []guest{{Running, nic(a, "vmbr0", "", "")}, {Stopped, nic(a, "vmbr0", "", "")}}, []string{"warning MAC_DUPLICATE guest/100"}},
		{"MAC on another bridge", []guest{{Running, nic(a, "vmbr0", "", "")}, {Running, nic(a, "vmbr1", "", "")}}, []string{}},
		{"MAC of a virtual router", []guest{{Running, nic("00:00:5E:00:01:05", "vmbr0", "", "")}, {Running, nic("00:00:5E:00:01:05", "vmbr0", "", "")}}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := AuditFacts{Now: healthNow, Nodes: map[string]AuditNode{"n": {Links: []parse.Link{{Name: "vmbr0", Addresses: []parse.LinkAddress{{Prefix: netip.MustParsePrefix("10.0.0.99/24"), Scope: "global"}}}}}}}
			for i, g := range tt.guests {
				v.Guests = append(v.Guests, aGuest(t, "lxc", 100+i, g.status, g.conf))
			}
			got := []string{}
			for _, f := range told(Judge{}.Audit(v)) {
				if strings.Contains(f, "DUPLICATE") {
					got = append(got, f)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What guests show of themselves counts like what is configured, on the device
// that has the MAC.
func TestTwiceAsSeen(t *testing.T) {
	const mac = "bc:24:11:00:00:0b"
	lxc := "onboot: 1\nunprivileged: 1\nnet0: name=eth0,hwaddr=BC:24:11:00:00:0A,bridge=vmbr0,ip=10.0.0.1/24\n"
	vm := good + "net0: virtio=BC:24:11:00:00:0B,bridge=vmbr0\n"
	seen := func(mac, ip string) parse.GuestInterface {
		return parse.GuestInterface{Name: "eth0", MAC: mac, Addresses: []netip.Prefix{netip.MustParsePrefix(ip)}}
	}
	for _, tt := range []struct {
		name string
		seen []parse.GuestInterface
		want []string
	}{
		{"another address", []parse.GuestInterface{seen(mac, "10.0.0.2/24")}, []string{}},
		{"the same one", []parse.GuestInterface{seen(mac, "10.0.0.1/24")}, []string{"critical IP_DUPLICATE guest/100"}},
		{"on a bridge inside", []parse.GuestInterface{seen("02:42:00:00:00:01", "10.0.0.1/24")}, []string{}},
		{"on one of several VLANs inside", []parse.GuestInterface{seen(mac, "10.0.0.9/24"), seen(mac, "10.0.0.1/24")}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := aGuest(t, "qemu", 101, Running, vm)
			g.Seen = tt.seen
			v := AuditFacts{Now: healthNow, Guests: []AuditGuest{aGuest(t, "lxc", 100, Running, lxc), g}}
			if d := cmp.Diff(tt.want, told(Judge{}.sameAddress(v))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestOrphanDisks(t *testing.T) {
	lvm := parse.StorageConfig{ID: "lvm", Type: "lvmthin", VGName: "pve", ThinPool: "data"}
	again := lvm
	again.ID = "lvm-again"
	nfs := parse.StorageConfig{ID: "nfs", Type: "nfs", Server: "s", Export: "/e", Shared: true}
	conf := "scsi0: lvm:vm-100-disk-0,size=1G\nefidisk0: lvm:vm-100-disk-1\ntpmstate0: lvm:vm-100-disk-2\nide0: lvm:vm-100-cloudinit,media=cdrom\nunused0: lvm:vm-100-disk-3\nscsi5: nfs:100/vm-100-disk-0.qcow2\nscsi6: lvm:base-8000-disk-0/vm-100-disk-5\nparent: s\n[s]\nscsi0: lvm:vm-100-disk-4\nvmstate: lvm:vm-100-state-s\n"
	base := "template: 1\nscsi0: lvm:base-9000-disk-0\n"
	for _, tt := range []struct {
		name, storage, node, volume string
		change                      func(*AuditFacts)
		orphan                      bool
	}{
		{name: "its disk", volume: "vm-100-disk-0"},
		{name: "EFI", volume: "vm-100-disk-1"},
		{name: "TPM", volume: "vm-100-disk-2"},
		{name: "cloud-init", volume: "vm-100-cloudinit"},
		{name: "detached", volume: "vm-100-disk-3"},
		{name: "of a snapshot", volume: "vm-100-disk-4"},
		{name: "a snapshot's memory", volume: "vm-100-state-s"},
		{name: "a template's base", volume: "base-9000-disk-0"},
		{name: "a linked clone", volume: "base-8000-disk-0/vm-100-disk-5"},
		{name: "what a linked clone needs", volume: "base-8000-disk-0"},
		{name: "through another storage", storage: "lvm-again", volume: "vm-100-disk-0"},
		{name: "in a folder", storage: "nfs", volume: "100/vm-100-disk-0.qcow2"},
		{name: "nobody's", volume: "vm-100-disk-9", orphan: true},
		{name: "of a guest that is gone", volume: "vm-777-disk-0", orphan: true},
		{name: "left on another node", node: "m", volume: "vm-100-disk-0", orphan: true},
		{name: "a replicated copy", node: "m", volume: "vm-100-disk-0", change: func(v *AuditFacts) { v.Replication = []parse.ReplicationJob{{VMID: 100, Target: "m"}} }},
		{name: "while the guest is made", volume: "vm-100-disk-9", change: func(v *AuditFacts) { v.Guests[0].Lock = "clone" }},
		{name: "made a moment ago", volume: "vm-100-disk-9", change: func(v *AuditFacts) { v.Volumes[0].Content.Volumes[0].Created = Ptr(healthNow.Add(-time.Minute)) }},
		{name: "not every configuration was read", volume: "vm-100-disk-9", change: func(v *AuditFacts) { v.Whole = false }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storages := map[string]parse.StorageConfig{"": lvm, "lvm-again": again, "nfs": nfs}
			st, node := storages[tt.storage], "n"
			if tt.node != "" {
				node = tt.node
			}
			c, _, err := parse.Content(fmt.Appendf(nil, `[{"content":"images","volid":"%s:%s","size":1}]`, st.ID, tt.volume))
			if err != nil {
				t.Fatal(err)
			}
			v := AuditFacts{
				Guests:   []AuditGuest{aGuest(t, "qemu", 100, Running, conf), aGuest(t, "qemu", 9000, Stopped, base)},
				Storages: []parse.StorageConfig{lvm, again, nfs}, Volumes: []VolumeSource{{st, node, c}}, Whole: true, Now: healthNow,
			}
			if tt.change != nil {
				tt.change(&v)
			}
			if got := len(Findings(Judge{}.orphanDisks(v)...)) > 0; got != tt.orphan {
				t.Errorf("orphan %v, want %v", got, tt.orphan)
			}
		})
	}
}

func TestAuditReplication(t *testing.T) {
	now := healthNow.Unix()
	for _, tt := range []struct {
		name  string
		job   parse.ReplicationJob
		state []parse.ReplicationState
		read  bool
		want  []string
	}{
		{"well", parse.ReplicationJob{}, []parse.ReplicationState{{VMID: 100, Target: "m", LastSync: Ptr(now - 600)}}, true, []string{}},
		{"late", parse.ReplicationJob{}, []parse.ReplicationState{{VMID: 100, Target: "m", LastSync: Ptr(now - 46*60)}}, true, []string{"warning REPL_LAG guest/100"}},
		{"daily is not late", parse.ReplicationJob{Schedule: "02:00"}, []parse.ReplicationState{{VMID: 100, Target: "m", LastSync: Ptr(now - 30*3600)}}, true, []string{}},
		{"failed thrice", parse.ReplicationJob{}, []parse.ReplicationState{{VMID: 100, Target: "m", LastSync: Ptr(now - 90000), FailCount: Ptr(int64(3)), Error: "x"}}, true, []string{"warning REPL_FAILED guest/100"}},
		{"failed again and again", parse.ReplicationJob{}, []parse.ReplicationState{{VMID: 100, Target: "m", FailCount: Ptr(int64(41))}}, true, []string{"critical REPL_FAILED guest/100"}},
		{"never", parse.ReplicationJob{}, nil, true, []string{"warning REPL_NEVER guest/100"}},
		{"to another node", parse.ReplicationJob{}, []parse.ReplicationState{{VMID: 100, Target: "x", LastSync: Ptr(now)}}, true, []string{"warning REPL_NEVER guest/100"}},
		{"disabled", parse.ReplicationJob{Disabled: true}, nil, true, []string{"info REPL_DISABLED guest/100"}},
		{"not read", parse.ReplicationJob{}, nil, false, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.ID, tt.job.VMID, tt.job.Target = "100-0", 100, "m"
			v := AuditFacts{Guests: []AuditGuest{aGuest(t, "lxc", 100, Running, "onboot: 1\nunprivileged: 1\n")}, Replication: []parse.ReplicationJob{tt.job}, Now: healthNow, Nodes: map[string]AuditNode{"n": {Replication: tt.state, ReplRead: tt.read}}}
			if d := cmp.Diff(tt.want, told(Judge{}.Audit(v))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestGroupKeepsEachOnce(t *testing.T) {
	fs := []Finding{
		{Code: "A", Severity: Info, Subject: "guest/1", Message: "m"}, {Code: "B", Severity: Critical, Subject: "node/n", Message: "m"},
		{Code: "A", Severity: Info, Subject: "guest/1", Message: "m"}, {Code: "C", Severity: Warning, Subject: "guest/1", Message: "m"}, {Code: "D", Severity: Warning, Subject: "node/n/sda", Message: "m"},
	}
	subjects := func(a *Audit) string {
		out := ""
		for _, g := range a.Everything() {
			out += fmt.Sprint(g.Subject, len(g.Findings), " ")
		}
		return out
	}
	for _, tt := range []struct {
		name string
		f    AuditFilter
		want string
	}{
		{"all", AuditFilter{}, "node/n1 guest/12 node/n/sda1 "},
		{"warnings and worse", AuditFilter{Min: Warning}, "node/n1 guest/11 node/n/sda1 "},
		{"by code", AuditFilter{Code: "a"}, "guest/11 "},
		{"by subject", AuditFilter{Subject: "guest/1"}, "guest/12 "},
		{"by a part", AuditFilter{Subject: "n"}, "node/n1 node/n/sda1 "},
		{"a part is whole", AuditFilter{Subject: "guest"}, "guest/12 "},
		{"no part of a part", AuditFilter{Subject: "gues"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := subjects(Group(append([]Finding{}, fs...), tt.f, nil, nil)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOncePerBackup(t *testing.T) {
	var j Judge
	node := j.Find("BACKUP_JOB_FAILED", "", "node/a", "x")
	other := j.Find("BACKUP_JOB_FAILED", "", "node/b", "x")
	guest := j.Find("BACKUP_JOB_FAILED", "", "guest/1", "x", Evidence{Name: "node", Value: "a"})
	if d := cmp.Diff([]string{"critical BACKUP_JOB_FAILED guest/1", "critical BACKUP_JOB_FAILED node/b"}, told(OncePerBackup([]*Finding{node, nil, other, guest}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
