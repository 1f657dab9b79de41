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

// appendOnce keeps a set in order. A list that long is nobody's: it ends, so
// that a hostile file costs no time.
func appendOnce(list []string, s string) []string {
	const most = 1000
	if len(list) >= most || slices.Contains(list, s) {
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

// highestIndex is above what Proxmox gives to any key (mp255, unused255).
const highestIndex = 1023

// setNumbered reads the keys with a number: disks, NICs, devices. A key that
// repeats replaces the one before it, as in Proxmox.
func (s *GuestSettings) setNumbered(key, value string) (ok, known bool) {
	bus := strings.TrimRight(key, "0123456789")
	digits := key[len(bus):]
	if key == "rootfs" || key == "cdrom" {
		digits = "0"
	}
	index := parseInt(digits)
	if index == nil || *index > highestIndex {
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
