package report

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// An AuditNode is what one node told for an audit; what it did not is nil.
// TasksRead says that its running tasks are known.
type AuditNode struct {
	Links       []parse.Link
	Tasks       []parse.Task
	TasksRead   bool
	Boot        int64
	Replication []parse.ReplicationState
	ReplRead    bool
	Certs       []parse.Certificate
}

// An AuditGuest is a guest with its configuration. Seen are the interfaces that
// it shows itself, where it was asked; Silent says that its agent, which is
// enabled, gave no answer.
type AuditGuest struct {
	Guest
	Config *parse.GuestConfig
	Seen   []parse.GuestInterface
	Silent bool
}

// A VolumeSource is one storage as one node lists it: its disk images and
// container volumes.
type VolumeSource struct {
	Storage parse.StorageConfig
	Node    string
	Content parse.StorageContent
}

// AuditFacts is what the checks of one cluster's configuration rest on. Whole is
// set when the configuration of every guest was read without a bad line: only
// then is a volume that nobody names an orphan.
type AuditFacts struct {
	Name        string // "" leaves the cluster out of the subjects
	Guests      []AuditGuest
	Storages    []parse.StorageConfig
	Replication []parse.ReplicationJob
	HA          []parse.HAResource
	Nodes       map[string]AuditNode
	Volumes     []VolumeSource
	VNets       []string // of SDN: each is a bridge on its nodes once it is applied
	Whole       bool
	Now         time.Time
}

func (v AuditFacts) subject(parts ...string) string {
	if v.Name != "" {
		parts = append([]string{v.Name}, parts...)
	}
	return strings.Join(parts, "/")
}

func (v AuditFacts) guest(vmid int) string { return v.subject("guest", fmt.Sprint(vmid)) }

// Audit makes every finding that rests on configurations: guests, networks,
// start order, replication, certificates and volumes.
func (j Judge) Audit(v AuditFacts) []*Finding {
	var out []*Finding
	managed := v.managed()
	for _, g := range v.Guests {
		out = append(out, j.auditGuest(v, g, managed)...)
	}
	return slices.Concat(out, j.startOrder(v, managed), j.sameMAC(v), j.sameAddress(v), j.auditReplication(v), j.auditCertificates(v), j.orphanDisks(v))
}

// managed is what HA wants of the guests that it manages: started where the
// configuration names no state.
func (v AuditFacts) managed() map[int]string {
	out := map[int]string{}
	for _, r := range v.HA {
		if r.State != "ignored" {
			out[r.VMID] = cmp.Or(r.State, "started")
		}
	}
	return out
}

func (j Judge) auditGuest(v AuditFacts, g AuditGuest, managed map[int]string) []*Finding {
	subject := v.guest(g.VMID)
	out := []*Finding{j.auditState(v, subject, g, managed), j.auditLock(v, subject, g)}
	s := g.Config.Current
	if g.Type == "lxc" {
		out = append(out, j.auditContainer(subject, s))
	} else {
		out = append(out, j.auditVM(subject, g)...)
	}
	out = append(out, j.auditDisks(subject, g, s)...)
	return append(out, j.auditNICs(v, subject, g)...)
}

func (j Judge) auditState(v AuditFacts, subject string, g AuditGuest, managed map[int]string) *Finding {
	want, ha := managed[g.VMID]
	wanted := ""
	switch {
	case g.Template:
	case ha && (want == "started" || want == "enabled"):
		wanted = "HA wants it started"
	case !ha && g.Config.Current.OnBoot:
		wanted = "it starts with its node"
	}
	status := Evidence{Name: "status", Value: g.Status}
	switch {
	case g.Status == "io-error":
		return j.Find("GUEST_IO_ERROR", "", subject, "QEMU stopped the VM: a disk failed or its storage is full", status)
	case g.Status == "paused" || g.Status == "internal-error" || g.Status == "guest-panicked" || g.Status == "watchdog":
		return j.Find("GUEST_PAUSED", "", subject, "the VM does not run: QEMU says "+g.Status, status)
	case g.Status == Stopped && wanted != "" && g.Lock != "suspended":
		return j.Find("GUEST_STOPPED_ONBOOT", "", subject, "the guest is stopped although "+wanted, status, Evidence{Name: "wanted", Value: wanted})
	case g.Status == Running && !ha && !g.Config.Current.OnBoot:
		return j.Find("GUEST_NO_ONBOOT", "", subject, "the guest runs but does not start with its node", Evidence{Name: "onboot", Value: "0"})
	}
	return nil
}

func (j Judge) auditLock(v AuditFacts, subject string, g AuditGuest) *Finding {
	if g.Lock == "" {
		return nil
	}
	lock := Evidence{Name: "lock", Value: g.Lock}
	n := v.Nodes[g.Node]
	switch t := RunningTask(n.Tasks, g.VMID, n.Boot, lockTasks[g.Lock]); {
	case g.Lock == "suspended":
		return j.Find("GUEST_LOCKED", Info, subject, "the guest is locked (suspended): it is suspended to disk", lock)
	case t != nil:
		return j.Find("GUEST_LOCKED", Info, subject, "the guest is locked ("+g.Lock+"): a task runs", lock, Evidence{Name: "task", Value: Clean(t.Name)})
	case !n.TasksRead:
		return j.Find("GUEST_LOCKED", Info, subject, "the guest is locked ("+g.Lock+"); whether a task runs is not known", lock)
	}
	return j.Find("GUEST_LOCKED", Warning, subject, "the guest is locked ("+g.Lock+") and no running task explains it", lock)
}

func (j Judge) auditContainer(subject string, s parse.GuestSettings) *Finding {
	switch {
	case s.Raw.AppArmorProfile == "unconfined":
		return j.Find("CT_APPARMOR_OFF", "", subject, "the container runs without AppArmor", Evidence{Name: "lxc.apparmor.profile", Value: "unconfined"}, Evidence{Name: "unprivileged", Value: YesNo(&s.Unprivileged)})
	case !s.Unprivileged && s.Features != nil && s.Features.Nesting:
		return j.Find("CT_PRIVILEGED_NESTING", "", subject, "a privileged container with nesting", Evidence{Name: "unprivileged", Value: "0"}, Evidence{Name: "nesting", Value: "1"})
	case !s.Unprivileged:
		return j.Find("CT_PRIVILEGED", "", subject, "the container is privileged", Evidence{Name: "unprivileged", Value: "0"})
	}
	return nil
}

func (j Judge) auditVM(subject string, g AuditGuest) []*Finding {
	var out []*Finding
	s := g.Config.Current
	if cpu := cmp.Or(s.CPUType, "kvm64"); cpu == "kvm64" && s.Arch != "aarch64" {
		value := "kvm64"
		if s.CPUType == "" {
			value = "not set, so kvm64"
		}
		out = append(out, j.Find("GUEST_CPU_TYPE_KVM64", "", subject, "the CPU type is kvm64", Evidence{Name: "cpu", Value: value}))
	}
	switch {
	case !g.Template && (s.Agent == nil || !s.Agent.Enabled):
		out = append(out, j.Find("GUEST_AGENT_OFF", "", subject, "the guest agent is not enabled", Evidence{Name: "agent", Value: "0"}))
	case g.Silent:
		out = append(out, j.Find("GUEST_AGENT_SILENT", "", subject, "the guest agent is enabled but does not answer", Evidence{Name: "agent", Value: "1"}))
	}
	return out
}

func (j Judge) auditDisks(subject string, g AuditGuest, s parse.GuestSettings) []*Finding {
	var out []*Finding
	if !g.Template {
		out = append(out, j.ExcludedFindings(subject, Excluded(g.Type, s))...)
	}
	for _, d := range s.Disks {
		where := Evidence{Name: Clean(d.Key), Value: Clean(cmp.Or(d.Volume, d.Source))}
		switch {
		case d.Kind == parse.DiskUnused:
			out = append(out, j.Find("UNUSED_DISK", "", subject, fmt.Sprintf("%s is detached but not deleted", Clean(d.Key)), where))
		case d.Kind == parse.DiskCDROM && d.Volume != "":
			out = append(out, j.Find("ISO_LEFT_MOUNTED", "", subject, fmt.Sprintf("%s holds %s", Clean(d.Key), Clean(d.Volume)), where))
		case d.Bus == "ide" && (d.Kind == parse.DiskVolume || d.Kind == parse.DiskDevice):
			out = append(out, j.Find("GUEST_DISK_IDE", "", subject, fmt.Sprintf("disk %s is attached by IDE", Clean(d.Key)), where))
		}
	}
	return out
}

func (j Judge) auditNICs(v AuditFacts, subject string, g AuditGuest) []*Finding {
	if g.Template {
		return nil
	}
	var out []*Finding
	node, read := v.Nodes[g.Node]
	for _, n := range g.Config.Current.NICs {
		key, bridge := Clean(n.Key), Clean(n.Bridge)
		switch {
		case n.Bridge == "" && g.Type == "qemu":
			out = append(out, j.Find("NET_NO_BRIDGE", "", subject, key+" has no bridge", Evidence{Name: key, Value: Clean(n.Model)}))
		case n.Bridge != "" && read && node.Links != nil && !slices.ContainsFunc(node.Links, func(l parse.Link) bool { return l.Name == n.Bridge }):
			severity, message := Critical, fmt.Sprintf("%s is on %s, which node %s does not have", key, bridge, g.Node)
			if g.Status == Stopped && !g.Config.Current.OnBoot {
				severity = Warning
			}
			if slices.Contains(v.VNets, n.Bridge) {
				message = fmt.Sprintf("%s is on the SDN vnet %s, which is not applied on node %s", key, bridge, g.Node)
			}
			out = append(out, j.Find("NET_BRIDGE_MISSING", severity, subject, message, Evidence{Name: "bridge", Value: bridge}))
		}
		if n.LinkDown {
			out = append(out, j.Find("NET_LINK_DOWN", "", subject, key+" is disconnected", Evidence{Name: key, Value: "link_down=1"}))
		}
	}
	return out
}

// startOrder finds nodes where several guests start and none says when.
func (j Judge) startOrder(v AuditFacts, managed map[int]string) []*Finding {
	count, ordered := map[string]int{}, map[string]bool{}
	for _, g := range v.Guests {
		s := g.Config.Current
		if _, ha := managed[g.VMID]; ha || !s.OnBoot || g.Template {
			continue
		}
		count[g.Node]++
		ordered[g.Node] = ordered[g.Node] || s.Startup != nil && s.Startup.Order != nil
	}
	var out []*Finding
	for _, node := range slices.Sorted(maps.Keys(count)) {
		if count[node] > 1 && !ordered[node] {
			out = append(out, j.Find("STARTUP_ORDER_NONE", "", v.subject("node", node), fmt.Sprintf("%d guests start with the node and none has an order", count[node]), Evidence{Name: "guests", Value: fmt.Sprint(count[node])}))
		}
	}
	return out
}

// A claim is a guest, or a node, that has a MAC or an address on a network.
type claim struct {
	vmid    int // 0 for a node
	who     string
	subject string
	running bool
	segment Segment
}

// sameSegment groups claims that are on one network, in their order.
func sameSegment(all []claim) [][]claim {
	var groups [][]claim
	for _, c := range all {
		i := slices.IndexFunc(groups, func(g []claim) bool { return g[0].segment.Same(c.segment) })
		if i < 0 {
			groups = append(groups, []claim{c})
			continue
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

func (v AuditFacts) claimOf(g AuditGuest, n parse.GuestNIC) claim {
	return claim{
		vmid: g.VMID, who: strings.TrimSpace(fmt.Sprintf("guest %d %s", g.VMID, g.Name)), subject: v.guest(g.VMID),
		running: g.Status == Running, segment: Segment{Bridge: n.Bridge, VLAN: valueOr(n.VLAN, 0)},
	}
}

func (j Judge) sameMAC(v AuditFacts) []*Finding {
	claims := map[string][]claim{}
	for _, g := range v.Guests {
		if g.Template {
			continue
		}
		for _, n := range g.Config.Current.NICs {
			if n.MAC != "" && n.Bridge != "" && !VirtualRouter(n.MAC) {
				claims[n.MAC] = append(claims[n.MAC], v.claimOf(g, n))
			}
		}
	}
	return j.twice("MAC_DUPLICATE", "MAC", claims)
}

func (j Judge) sameAddress(v AuditFacts) []*Finding {
	claims := map[string][]claim{}
	add := func(a netip.Prefix, c claim) {
		if a.IsValid() && a.Addr().IsGlobalUnicast() && c.segment.Bridge != "" {
			claims[a.Addr().String()] = append(claims[a.Addr().String()], c)
		}
	}
	for _, g := range v.Guests {
		if g.Template {
			continue
		}
		s := g.Config.Current
		for _, n := range s.NICs {
			c := v.claimOf(g, n)
			add(n.IPv4.Address, c)
			add(n.IPv6.Address, c)
			for _, ci := range s.IPConfigs {
				if ci.Index == n.Index {
					add(ci.IPv4.Address, c)
					add(ci.IPv6.Address, c)
				}
			}
		}
	}
	for _, g := range v.Guests {
		for _, n := range g.Config.Current.NICs {
			for _, a := range g.seenOn(n) {
				add(a, v.claimOf(g, n))
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(v.Nodes)) {
		for _, l := range v.Nodes[node].Links {
			for _, a := range l.Addresses {
				if a.Scope == "global" && claims[a.Prefix.Addr().String()] != nil {
					add(a.Prefix, claim{who: "node " + node, subject: v.subject("node", node), running: true, segment: Segment{Bridge: l.Name}})
				}
			}
		}
	}
	return j.twice("IP_DUPLICATE", "address", claims)
}

// seenOn are the addresses that a guest shows on a network device. Where several
// of its interfaces have the device's MAC, as VLANs inside the guest do, it is
// not known which network they are on.
func (g AuditGuest) seenOn(n parse.GuestNIC) []netip.Prefix {
	var out []netip.Prefix
	with := 0
	for _, i := range g.Seen {
		if n.MAC != "" && strings.EqualFold(i.MAC, n.MAC) {
			with++
			out = append(out, i.Addresses...)
		}
	}
	if with != 1 {
		return nil
	}
	return out
}

// twice makes a finding of every value that two or more have on one network:
// critical when two of them are live.
func (j Judge) twice(code, what string, claims map[string][]claim) []*Finding {
	var out []*Finding
	for _, value := range slices.Sorted(maps.Keys(claims)) {
		if len(claims[value]) < 2 {
			continue
		}
		for _, g := range sameSegment(claims[value]) {
			slices.SortStableFunc(g, func(a, b claim) int { return cmp.Compare(a.vmid, b.vmid) })
			g = slices.CompactFunc(g, func(a, b claim) bool { return a.who == b.who })
			if g[0].vmid == 0 && len(g) > 1 { // a node: the guest is who can change
				g = append(g[1:], g[0])
			}
			if len(g) < 2 {
				continue
			}
			live, others := 0, []string{}
			for _, c := range g {
				if c.running {
					live++
				}
				others = append(others, c.who)
			}
			severity := Warning
			if live > 1 {
				severity = Critical
			}
			message := fmt.Sprintf("%s %s is on %s, on %s", what, Clean(value), few(others), Clean(g[0].segment.String()))
			out = append(out, j.Find(code, severity, g[0].subject, message, Evidence{Name: what, Value: Clean(value)}, Evidence{Name: "live", Value: fmt.Sprint(live)}))
		}
	}
	return out
}
