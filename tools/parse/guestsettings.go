package parse

import (
	"cmp"
	"slices"
	"strings"
)

// GuestSettings are the keys of one section. A nil pointer and an empty text
// mean that the key is not written, so Proxmox's default holds; flags without a
// pointer are off by default. Sizes are bytes.
type GuestSettings struct {
	Name       string // hostname of a container, name of a VM
	Parent     string // the snapshot that this state descends from
	Lock       string
	Tags       []string // as written, each once
	OSType     string
	Arch       string
	Template   bool
	OnBoot     bool
	Protection bool
	Startup    *Startup

	Cores, Sockets, VCPUs *int64
	CPULimit              *float64
	CPUUnits              *int64
	CPUType               string
	CPUFlags              []string // +aes, -pcid
	MemoryBytes           *int64
	BalloonBytes          *int64 // least memory; 0: ballooning is off
	SwapBytes             *int64
	Hugepages             string
	NUMA, KVM, ACPI       *bool

	Unprivileged bool
	Features     *Features
	Raw          RawLXC

	Agent            *Agent
	BIOS, Machine    string
	RunningMachine   string // of a snapshot with memory
	SCSIHW, Hotplug  string
	VGA              string
	BootOrder        []string // device keys; nil: not written
	BootLegacy       string   // the old form, letters such as cdn
	BootDisk         string
	CreatedAt        *int64 // unix seconds, from meta
	CreatedWith      string // QEMU version, from meta
	AMDSEV, IntelTDX string
	VMState          string // volume with saved memory
	VMStateStorage   string
	HookScript       string   // volume
	CICustom         []Option // kind and volume

	Disks     []GuestDisk // by bus, then index
	NICs      []GuestNIC  // by index
	IPConfigs []IPConfig  // by index
	Devices   []PassedDevice

	Description *string  // text by people; only where the source sends it
	SetKeys     []string // keys that are set and whose value is not kept
	OtherKeys   []string // keys that this program does not read
}

// Startup is the boot order: number, and the seconds to wait after the start
// and for the shutdown.
type Startup struct{ Order, Up, Down *int64 }

// Agent is the guest agent's setting of a VM.
type Agent struct {
	Enabled bool
	Type    string // virtio or isa
	Options []Option
}

// Features are what a container may do beyond the default.
type Features struct {
	Nesting, Keyctl, FUSE, MkNod, ForceRWSys bool
	Mount                                    []string // filesystem types
	Options                                  []Option
}

// set stores one key; false means that the value could not be read.
func (s *GuestSettings) set(kind, key, value string) bool {
	if strings.HasPrefix(key, "lxc.") {
		return s.setRaw(key, value)
	}
	if isSecretKey(key) {
		s.SetKeys = appendOnce(s.SetKeys, key)
		return true
	}
	if key == "description" {
		return s.describe(value)
	}
	if value == "" {
		s.SetKeys = appendOnce(s.SetKeys, key)
		return true
	}
	if ok, known := s.setGeneral(key, value); known {
		return ok
	}
	if ok, known := s.setMachine(key, value); known {
		return ok
	}
	if ok, known := s.setNumbered(key, value); known {
		return ok
	}
	s.OtherKeys = appendOnce(s.OtherKeys, key)
	return true
}

// isSecretKey tells the keys whose values never matter here: command lines,
// environments, passwords, keys, serial numbers.
func isSecretKey(key string) bool {
	switch key {
	case "args", "ivshmem", "cipassword", "entrypoint", "env", "smbios1", "sshkeys", "vmgenid":
		return true
	}
	return false
}

func (s *GuestSettings) setRaw(key, value string) bool {
	kept, ok := s.Raw.line(key, value)
	if !kept {
		s.SetKeys = appendOnce(s.SetKeys, key)
	}
	return ok
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// setGeneral reads the keys that both kinds have.
func (s *GuestSettings) setGeneral(key, value string) (ok, known bool) {
	switch key {
	case "hostname", "name":
		return setText(&s.Name, value), true
	case "parent":
		return setText(&s.Parent, value), true
	case "lock":
		return setText(&s.Lock, value), true
	case "tags":
		s.Tags = splitSet(value)
		return true, true
	case "ostype":
		return setText(&s.OSType, value), true
	case "arch":
		return setText(&s.Arch, value), true
	case "template":
		return setFlag(&s.Template, value), true
	case "onboot":
		return setFlag(&s.OnBoot, value), true
	case "protection":
		return setFlag(&s.Protection, value), true
	case "startup":
		s.Startup = parseStartup(value)
		return s.Startup != nil, true
	case "cores":
		return setInt(&s.Cores, value), true
	case "cpulimit":
		return setFloat(&s.CPULimit, value), true
	case "cpuunits":
		return setInt(&s.CPUUnits, value), true
	case "memory":
		return s.setMemory(value), true
	case "swap":
		return setMiB(&s.SwapBytes, value), true
	case "unprivileged":
		return setFlag(&s.Unprivileged, value), true
	case "features":
		s.Features = parseFeatures(value)
		return true, true
	case "hookscript":
		return setText(&s.HookScript, value), true
	}
	return false, false
}

// setMachine reads the keys that only a VM has.
func (s *GuestSettings) setMachine(key, value string) (ok, known bool) {
	switch key {
	case "sockets":
		return setInt(&s.Sockets, value), true
	case "vcpus":
		return setInt(&s.VCPUs, value), true
	case "cpu":
		return s.setCPU(value), true
	case "balloon":
		return setMiB(&s.BalloonBytes, value), true
	case "hugepages":
		return setText(&s.Hugepages, value), true
	case "numa":
		return setBool(&s.NUMA, value), true
	case "kvm":
		return setBool(&s.KVM, value), true
	case "acpi":
		return setBool(&s.ACPI, value), true
	case "agent":
		s.Agent = parseAgent(value)
		return s.Agent != nil, true
	case "bios":
		return setText(&s.BIOS, value), true
	case "machine":
		s.Machine = optionValue(value, "type")
		return true, true
	case "runningmachine":
		s.RunningMachine = optionValue(value, "type")
		return true, true
	case "scsihw":
		return setText(&s.SCSIHW, value), true
	case "hotplug":
		return setText(&s.Hotplug, value), true
	case "vga":
		s.VGA = optionValue(value, "type")
		return true, true
	case "boot":
		return s.setBoot(value), true
	case "bootdisk":
		return setText(&s.BootDisk, value), true
	case "meta":
		return s.setMeta(value), true
	case "amd-sev":
		s.AMDSEV = optionValue(value, "type")
		return true, true
	case "intel-tdx":
		s.IntelTDX = optionValue(value, "type")
		return true, true
	case "vmstate":
		return setText(&s.VMState, value), true
	case "vmstatestorage":
		return setText(&s.VMStateStorage, value), true
	case "cicustom":
		s.CICustom = splitOptions(value, "")
		return true, true
	}
	return false, false
}

// setNumbered reads the keys with a number: disks, NICs, devices. A key that
// repeats replaces the one before it, as in Proxmox.
func (s *GuestSettings) setNumbered(key, value string) (ok, known bool) {
	bus := strings.TrimRight(key, "0123456789")
	digits := key[len(bus):]
	if key == "rootfs" || key == "cdrom" {
		digits = "0"
	}
	index := parseInt(digits)
	if index == nil || *index > 1<<16 {
		return false, false
	}
	at := int(*index)
	switch bus {
	case "rootfs", "mp", "ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "unused", "cdrom":
		disk, ok := parseGuestDisk(key, bus, at, value)
		return replace(&s.Disks, disk, ok, func(d GuestDisk) string { return d.Key }), true
	case "net":
		nic, ok := parseGuestNIC(key, at, value)
		return replace(&s.NICs, nic, ok, func(n GuestNIC) string { return n.Key }), true
	case "ipconfig":
		c, ok := parseIPConfig(key, at, value)
		return replace(&s.IPConfigs, c, ok, func(c IPConfig) string { return c.Key }), true
	case "hostpci":
		bus = "pci"
	case "usb", "dev", "serial", "parallel", "virtiofs":
	default:
		return false, false
	}
	device, ok := parsePassedDevice(key, bus, at, value)
	return replace(&s.Devices, device, ok, func(d PassedDevice) string { return d.Key }), true
}

func replace[T any](list *[]T, item T, ok bool, key func(T) string) bool {
	if !ok {
		return false
	}
	for i := range *list {
		if key((*list)[i]) == key(item) {
			(*list)[i] = item
			return true
		}
	}
	*list = append(*list, item)
	return true
}

// finish sorts what the file has in the order of its text, where net10 stands
// before net2.
func (s *GuestSettings) finish() {
	slices.SortStableFunc(s.Disks, func(a, b GuestDisk) int {
		return cmp.Or(cmp.Compare(diskRank(a.Bus), diskRank(b.Bus)), strings.Compare(a.Bus, b.Bus), cmp.Compare(a.Index, b.Index))
	})
	slices.SortStableFunc(s.NICs, func(a, b GuestNIC) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortStableFunc(s.IPConfigs, func(a, b IPConfig) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortStableFunc(s.Devices, func(a, b PassedDevice) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index))
	})
}

// diskRank puts a container's root first and the unused volumes last.
func diskRank(bus string) int {
	switch bus {
	case "rootfs":
		return 0
	case "unused":
		return 2
	}
	return 1
}

// describe keeps a description that was sent, and its presence if it was not.
func (s *GuestSettings) describe(value string) bool {
	if value == "" {
		s.SetKeys = appendOnce(s.SetKeys, "description")
		return true
	}
	s.Description = new(decodeDescription(value))
	return true
}

// decodeDescription undoes Proxmox's percent-encoding; what is no encoding
// stays. The closing line feed is not part of the text.
func decodeDescription(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b.WriteByte(hexValue(s[i+1])<<4 | hexValue(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return strings.TrimRight(b.String(), "\n")
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func parseStartup(value string) *Startup {
	var s Startup
	for _, o := range splitOptions(value, "order") {
		ok := true
		switch o.Key {
		case "order":
			ok = o.Value == "any" || setInt(&s.Order, o.Value)
		case "up":
			ok = setInt(&s.Up, o.Value)
		case "down":
			ok = setInt(&s.Down, o.Value)
		}
		if !ok {
			return nil
		}
	}
	return &s
}

func parseAgent(value string) *Agent {
	var a Agent
	for _, o := range splitOptions(value, "enabled") {
		switch o.Key {
		case "enabled":
			if !setFlag(&a.Enabled, o.Value) {
				return nil
			}
		case "type":
			a.Type = o.Value
		default:
			a.Options = append(a.Options, o)
		}
	}
	return &a
}

func parseFeatures(value string) *Features {
	var f Features
	flags := map[string]*bool{"nesting": &f.Nesting, "keyctl": &f.Keyctl, "fuse": &f.FUSE, "mknod": &f.MkNod, "force_rw_sys": &f.ForceRWSys}
	for _, o := range splitOptions(value, "") {
		flag := flags[o.Key]
		switch {
		case o.Key == "mount":
			f.Mount = splitList(o.Value)
		case flag == nil || !setFlag(flag, o.Value):
			f.Options = append(f.Options, o)
		}
	}
	return &f
}

// setMemory reads MiB, plain or as current=MiB.
func (s *GuestSettings) setMemory(value string) bool {
	return setMiB(&s.MemoryBytes, optionValue(value, "current"))
}

func setMiB(to **int64, value string) bool {
	n := parseInt(value)
	if n == nil || *n < 0 || *n > 1<<40 {
		return false
	}
	*to = new(*n << 20)
	return true
}

// optionValue returns the value of the key, or the bare first item's.
func optionValue(value, key string) string {
	for _, o := range splitOptions(value, key) {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}

func (s *GuestSettings) setCPU(value string) bool {
	for _, o := range splitOptions(value, "cputype") {
		switch o.Key {
		case "cputype":
			s.CPUType = o.Value
		case "flags":
			s.CPUFlags = splitList(o.Value)
		}
	}
	return s.CPUType != "" || s.CPUFlags != nil
}

func (s *GuestSettings) setBoot(value string) bool {
	for _, o := range splitOptions(value, "legacy") {
		switch o.Key {
		case "order":
			s.BootOrder = append([]string{}, splitList(o.Value)...)
		case "legacy":
			s.BootLegacy = o.Value
		}
	}
	return s.BootOrder != nil || s.BootLegacy != ""
}

func (s *GuestSettings) setMeta(value string) bool {
	for _, o := range splitOptions(value, "") {
		switch o.Key {
		case "ctime":
			setInt(&s.CreatedAt, o.Value)
		case "creation-qemu":
			s.CreatedWith = o.Value
		}
	}
	return true
}
