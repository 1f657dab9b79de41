package report

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// A Disk is one disk, mount point or drive of a guest. Kind is volume, bind,
// device, cdrom, cloudinit, efidisk, tpmstate, unused, … ; Volume is the storage's name
// for it, BindSource a path on the node. Backup is set only where the
// configuration says so.
type Disk struct {
	Key        string   `json:"key"`
	Bus        string   `json:"bus"`
	Kind       string   `json:"kind"`
	Storage    string   `json:"storage,omitempty"`
	Volume     string   `json:"volume,omitempty"`
	BindSource string   `json:"bind_source,omitempty"`
	MountPoint string   `json:"mount_point,omitempty"`
	SizeBytes  *int64   `json:"size_bytes,omitempty"`
	Backup     *bool    `json:"backup,omitempty"`
	ReadOnly   *bool    `json:"read_only,omitempty"`
	Replicate  *bool    `json:"replicate,omitempty"`
	Shared     *bool    `json:"shared,omitempty"`
	Flags      []string `json:"flags,omitempty"`
}

// A NIC is one network device of a guest. MTUOfBridge is set where a VM takes the
// bridge's, which its configuration writes as 1. Mode is static, dhcp, auto or manual;
// a VM's own addresses are not in its configuration.
type NIC struct {
	Key         string   `json:"key"`
	Name        string   `json:"name,omitempty"`
	Model       string   `json:"model,omitempty"`
	MAC         string   `json:"mac,omitempty"`
	Bridge      string   `json:"bridge,omitempty"`
	VLAN        *int64   `json:"vlan,omitempty"`
	Trunks      []string `json:"trunks,omitempty"`
	Firewall    bool     `json:"firewall,omitempty"`
	LinkDown    bool     `json:"link_down,omitempty"`
	MTU         *int64   `json:"mtu,omitempty"`
	MTUOfBridge bool     `json:"mtu_of_bridge,omitempty"`
	Queues      *int64   `json:"queues,omitempty"`
	HostManaged bool     `json:"host_managed,omitempty"`
	RateMBs     *float64 `json:"rate_mb_s,omitempty"`
	IPv4Mode    string   `json:"ipv4_mode,omitempty"`
	IPv4Address string   `json:"ipv4_address,omitempty"`
	IPv4Gateway string   `json:"ipv4_gateway,omitempty"`
	IPv6Mode    string   `json:"ipv6_mode,omitempty"`
	IPv6Address string   `json:"ipv6_address,omitempty"`
	IPv6Gateway string   `json:"ipv6_gateway,omitempty"`
}

// A Device is a device of the node that is passed to the guest.
type Device struct {
	Key     string   `json:"key"`
	Kind    string   `json:"kind"`
	Hosts   []string `json:"hosts,omitempty"`
	Mapping string   `json:"mapping,omitempty"`
}

// AgentSetting is whether the guest agent is enabled in the configuration.
type AgentSetting struct {
	Enabled bool     `json:"enabled"`
	Type    string   `json:"type,omitempty"`
	Flags   []string `json:"flags,omitempty"`
}

// StartupOrder is the guest's place when the node starts.
type StartupOrder struct {
	Order *int64 `json:"order,omitempty"`
	UpS   *int64 `json:"up_s,omitempty"`
	DownS *int64 `json:"down_s,omitempty"`
}

// Settings are the settings of a guest. A field that is not set is absent, so
// Proxmox's default holds.
type Settings struct {
	OSType          string        `json:"os_type,omitempty"`
	Arch            string        `json:"arch,omitempty"`
	OnBoot          *bool         `json:"onboot,omitempty"`
	Protection      *bool         `json:"protection,omitempty"`
	Unprivileged    *bool         `json:"unprivileged,omitempty"`
	Startup         *StartupOrder `json:"startup,omitempty"`
	Cores           *int64        `json:"cores,omitempty"`
	Sockets         *int64        `json:"sockets,omitempty"`
	VCPUs           *int64        `json:"vcpus,omitempty"`
	CPULimit        *float64      `json:"cpu_limit,omitempty"`
	CPUUnits        *int64        `json:"cpu_units,omitempty"`
	CPUType         string        `json:"cpu_type,omitempty"`
	CPUFlags        []string      `json:"cpu_flags,omitempty"`
	MemoryBytes     *int64        `json:"memory_bytes,omitempty"`
	BalloonMinBytes *int64        `json:"balloon_min_bytes,omitempty"`
	SwapBytes       *int64        `json:"swap_bytes,omitempty"`
	NUMA            *bool         `json:"numa,omitempty"`
	Agent           *AgentSetting `json:"agent,omitempty"`
	BIOS            string        `json:"bios,omitempty"`
	Machine         string        `json:"machine,omitempty"`
	SCSIController  string        `json:"scsi_controller,omitempty"`
	VGA             string        `json:"vga,omitempty"`
	Boot            []string      `json:"boot,omitempty"`
	Features        []string      `json:"features,omitempty"`
	HookScript      string        `json:"hook_script,omitempty"`
	Disks           []Disk        `json:"disks"`
	NICs            []NIC         `json:"nics"`
	CloudInit       []NIC         `json:"cloud_init,omitempty"`
	CloudInitFiles  []string      `json:"cloud_init_files,omitempty"`
	Devices         []Device      `json:"devices,omitempty"`
	AppArmor        string        `json:"apparmor_profile,omitempty"`
	LXC             []string      `json:"lxc,omitempty"`
	SetKeys         []string      `json:"set_keys,omitempty"`
	OtherKeys       []string      `json:"other_keys,omitempty"`
}

// Pending are changes that take effect at the next start: the settings that
// change with their new values, their keys, and the keys that go.
type Pending struct {
	Keys     []string `json:"keys"`
	Delete   []string `json:"delete,omitempty"`
	Settings Settings `json:"settings"`
}

// GuestConfig is the answer of get_guest_config: the settings that hold now.
// SetKeys names what is set but never sent, because it may be a secret or is
// text by people.
type GuestConfig struct {
	Answer
	VMID      int      `json:"vmid"`
	Name      string   `json:"name,omitempty"`
	Type      string   `json:"type"`
	Node      string   `json:"node"`
	Cluster   string   `json:"cluster,omitempty"`
	Status    string   `json:"status"`
	Template  bool     `json:"template,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Pool      string   `json:"pool,omitempty"`
	Lock      string   `json:"lock,omitempty"`
	CreatedAt string   `json:"created_at,omitempty"`
	Snapshots []string `json:"snapshots"`
	Current   Settings `json:"current"`
	Pending   *Pending `json:"pending,omitempty"`
}

// Configuration builds the answer of get_guest_config from a guest's row and its
// configuration.
func Configuration(row Guest, c parse.GuestConfig) *GuestConfig {
	r := &GuestConfig{
		VMID: row.VMID, Name: row.Name, Type: row.Type, Node: row.Node, Cluster: row.Cluster, Status: row.Status,
		Template: row.Template, Tags: row.Tags, Pool: row.Pool, Lock: row.Lock,
		Snapshots: []string{}, Current: settings(c.Kind, c.Current),
	}
	if c.Current.CreatedAt != nil {
		r.CreatedAt = At(*c.Current.CreatedAt)
	}
	for _, s := range c.Snapshots {
		r.Snapshots = append(r.Snapshots, Clean(s.Name))
	}
	if p := c.Pending; p != nil {
		r.Pending = &Pending{Keys: clean2(p.Keys), Delete: clean2(p.Delete), Settings: settings("", p.Settings)}
		if r.Pending.Keys == nil {
			r.Pending.Keys = []string{}
		}
	}
	return r
}

// clean2 cleans every text of a list.
func clean2(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, Clean(s))
	}
	return out
}

// settings renders a section. Where kind is "", as for pending changes, flags
// that are off by default are left out.
func settings(kind string, s parse.GuestSettings) Settings {
	out := Settings{
		OSType: Clean(s.OSType), Arch: Clean(s.Arch), Cores: s.Cores, Sockets: s.Sockets, VCPUs: s.VCPUs,
		CPULimit: s.CPULimit, CPUUnits: s.CPUUnits, CPUType: Clean(s.CPUType), CPUFlags: clean2(s.CPUFlags),
		MemoryBytes: s.MemoryBytes, BalloonMinBytes: s.BalloonBytes, SwapBytes: s.SwapBytes, NUMA: s.NUMA,
		BIOS: Clean(s.BIOS), Machine: Clean(s.Machine), SCSIController: Clean(s.SCSIHW), VGA: Clean(s.VGA),
		Boot: clean2(s.BootOrder), HookScript: Clean(s.HookScript), AppArmor: Clean(s.Raw.AppArmorProfile),
		SetKeys: clean2(s.SetKeys), OtherKeys: clean2(s.OtherKeys), Disks: []Disk{}, NICs: []NIC{},
	}
	if kind != "" || s.OnBoot {
		out.OnBoot = Ptr(s.OnBoot)
	}
	if s.Protection {
		out.Protection = Ptr(true)
	}
	if kind == "lxc" {
		out.Unprivileged = Ptr(s.Unprivileged)
	}
	if s.Startup != nil {
		out.Startup = &StartupOrder{s.Startup.Order, s.Startup.Up, s.Startup.Down}
	}
	if a := s.Agent; a != nil {
		out.Agent = &AgentSetting{Enabled: a.Enabled, Type: Clean(a.Type), Flags: options(a.Options)}
	}
	if s.BootLegacy != "" && out.Boot == nil {
		out.Boot = []string{"legacy:" + Clean(s.BootLegacy)}
	}
	out.Features = features(s.Features)
	for _, d := range s.Disks {
		out.Disks = append(out.Disks, disk(d))
	}
	for _, n := range s.NICs {
		out.NICs = append(out.NICs, nic(n))
	}
	for _, n := range s.Raw.NICs {
		out.NICs = append(out.NICs, rawNIC(n))
	}
	for _, c := range s.IPConfigs {
		n := NIC{Key: Clean(c.Key)}
		n.addresses(c.IPv4, c.IPv6)
		out.CloudInit = append(out.CloudInit, n)
	}
	for _, f := range s.CICustom {
		out.CloudInitFiles = append(out.CloudInitFiles, Clean(f.Key+"="+f.Value))
	}
	for _, d := range s.Devices {
		out.Devices = append(out.Devices, Device{Key: Clean(d.Key), Kind: d.Kind, Hosts: clean2(d.Hosts), Mapping: Clean(d.Mapping)})
	}
	for _, l := range s.Raw.Lines {
		out.LXC = append(out.LXC, Clean(l.Key+": "+l.Value))
	}
	return out
}

func features(f *parse.Features) []string {
	if f == nil {
		return nil
	}
	var out []string
	for _, x := range []struct {
		name string
		on   bool
	}{{"nesting", f.Nesting}, {"keyctl", f.Keyctl}, {"fuse", f.FUSE}, {"mknod", f.MkNod}, {"force_rw_sys", f.ForceRWSys}} {
		if x.on {
			out = append(out, x.name)
		}
	}
	for _, m := range f.Mount {
		out = append(out, "mount="+Clean(m))
	}
	return append(out, options(f.Options)...)
}

func options(opts []parse.Option) []string {
	var out []string
	for _, o := range opts {
		out = append(out, Clean(o.Key+"="+o.Value))
	}
	return out
}

func disk(d parse.GuestDisk) Disk {
	out := Disk{
		Key: Clean(d.Key), Bus: Clean(d.Bus), Kind: d.Kind, Storage: Clean(d.Storage), Volume: Clean(d.Volume), BindSource: Clean(d.Source),
		MountPoint: Clean(d.MountPoint), SizeBytes: d.SizeBytes, Backup: d.Backup, ReadOnly: d.ReadOnly, Replicate: d.Replicate, Shared: d.Shared,
	}
	for _, f := range []struct {
		name string
		on   *bool
	}{{"iothread", d.IOThread}, {"discard", d.Discard}, {"ssd", d.SSD}, {"quota", d.Quota}, {"acl", d.ACL}} {
		if f.on != nil && *f.on {
			out.Flags = append(out.Flags, f.name)
		}
	}
	for _, kv := range [][2]string{{"cache", d.Cache}, {"format", d.Format}, {"media", d.Media}} {
		if kv[1] != "" {
			out.Flags = append(out.Flags, kv[0]+"="+Clean(kv[1]))
		}
	}
	if len(d.MountOptions) > 0 {
		out.Flags = append(out.Flags, "mountoptions="+Clean(strings.Join(d.MountOptions, ";")))
	}
	out.Flags = append(out.Flags, options(d.Options)...)
	return out
}

func nic(n parse.GuestNIC) NIC {
	out := NIC{
		Key: Clean(n.Key), Name: Clean(n.Name), Model: Clean(n.Model), MAC: Clean(n.MAC), Bridge: Clean(n.Bridge), VLAN: n.VLAN,
		Trunks: clean2(n.Trunks), Firewall: n.Firewall, LinkDown: n.LinkDown, MTU: n.MTU, RateMBs: n.Rate,
		Queues: n.Queues, HostManaged: n.HostManaged,
	}
	if out.Model != "" && n.MTU != nil && *n.MTU == 1 {
		out.MTU, out.MTUOfBridge = nil, true
	}
	out.addresses(n.IPv4, n.IPv6)
	return out
}

func (n *NIC) addresses(v4, v6 parse.Addressing) {
	n.IPv4Mode, n.IPv4Address, n.IPv4Gateway = addressing(v4)
	n.IPv6Mode, n.IPv6Address, n.IPv6Gateway = addressing(v6)
}

func addressing(a parse.Addressing) (mode, address, gateway string) {
	if a.Address.IsValid() {
		address = a.Address.String()
	}
	if a.Gateway.IsValid() {
		gateway = a.Gateway.String()
	}
	return a.Mode, address, gateway
}

func rawNIC(r parse.RawNIC) NIC {
	n := NIC{Key: fmt.Sprintf("lxc.net.%d", r.Index), Model: Clean(r.Type), MAC: Clean(r.MAC), Bridge: Clean(r.Link)}
	for _, a := range r.Addresses {
		if a.Addr().Is4() {
			n.IPv4Mode, n.IPv4Address = "static", a.String()
		} else {
			n.IPv6Mode, n.IPv6Address = "static", a.String()
		}
	}
	for _, g := range r.Gateways {
		if g.Is4() {
			n.IPv4Gateway = g.String()
		} else {
			n.IPv6Gateway = g.String()
		}
	}
	return n
}

// Prefixes returns the addresses that a NIC has by configuration.
func (n NIC) Prefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{n.IPv4Address, n.IPv6Address} {
		if p, err := netip.ParsePrefix(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// Tables shows the configuration to people.
func (r *GuestConfig) Tables() []Table {
	facts := Table{Columns: []string{"", ""}}
	add := func(name, value string) {
		if value != "" {
			facts.Rows = append(facts.Rows, []string{name, value})
		}
	}
	s := r.Current
	facts.Title = fmt.Sprintf("%s %d %s on %s: %s", r.Type, r.VMID, r.Name, r.Node, r.Status)
	add("tags", strings.Join(r.Tags, ", "))
	add("pool", r.Pool)
	add("lock", r.Lock)
	add("template", Yes(r.Template))
	add("os", s.OSType)
	add("cores", cores(s))
	add("cpu", strings.TrimSpace(s.CPUType+" "+strings.Join(s.CPUFlags, " ")))
	add("memory", Bytes(s.MemoryBytes))
	add("balloon min", Bytes(s.BalloonMinBytes))
	add("swap", Bytes(s.SwapBytes))
	if s.OnBoot != nil {
		add("onboot", YesNo(s.OnBoot))
	}
	if s.Unprivileged != nil {
		add("unprivileged", YesNo(s.Unprivileged))
	}
	add("features", strings.Join(s.Features, ", "))
	if s.Agent != nil {
		add("agent", YesNo(&s.Agent.Enabled))
	}
	add("boot", strings.Join(s.Boot, ", "))
	add("snapshots", strings.Join(r.Snapshots, ", "))
	add("set, not sent", strings.Join(s.SetKeys, ", "))
	add("lxc", strings.Join(s.LXC, "\n"))
	if r.Pending != nil {
		add("pending", strings.Join(append(slices.Clone(r.Pending.Keys), prefixed("-", r.Pending.Delete)...), ", "))
	}
	for i := range facts.Rows {
		facts.Rows[i][1] = strings.ReplaceAll(facts.Rows[i][1], "\n", "; ")
	}
	facts.Columns = []string{"setting", "value"}
	return []Table{facts, diskTable(s.Disks), nicTable("Network", append(slices.Clone(s.NICs), s.CloudInit...))}
}

func prefixed(p string, in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, p+s)
	}
	return out
}

func cores(s Settings) string {
	switch {
	case s.Cores == nil:
		return ""
	case s.Sockets != nil && *s.Sockets > 1:
		return fmt.Sprintf("%d × %d sockets", *s.Cores, *s.Sockets)
	}
	return fmt.Sprint(*s.Cores)
}

func diskTable(disks []Disk) Table {
	t := Table{Title: "Disks", Columns: []string{"key", "kind", "where", "at", ">size", "backup", "flags"}}
	for _, d := range disks {
		backup := ""
		if d.Backup != nil {
			backup = YesNo(d.Backup)
		}
		where := d.Volume
		if where == "" {
			where = d.BindSource
		}
		t.Rows = append(t.Rows, []string{d.Key, d.Kind, where, d.MountPoint, Bytes(d.SizeBytes), backup, strings.Join(d.Flags, " ")})
	}
	return t
}

func nicTable(title string, nics []NIC) Table {
	t := Table{Title: title, Columns: []string{"key", "name", "model", "bridge", "vlan", "mac", "ipv4", "ipv6"}}
	for _, n := range nics {
		vlan := ""
		if n.VLAN != nil {
			vlan = fmt.Sprint(*n.VLAN)
		}
		v4, v6 := n.IPv4Address, n.IPv6Address
		if v4 == "" {
			v4 = n.IPv4Mode
		}
		if v6 == "" {
			v6 = n.IPv6Mode
		}
		t.Rows = append(t.Rows, []string{n.Key, n.Name, n.Model, n.Bridge, vlan, n.MAC, v4, v6})
	}
	return t
}
