package parse

import (
	"slices"
	"strings"
)

// A PhysicalDisk is one disk of a node. Its serial number and its WWN have no field.
type PhysicalDisk struct {
	Path     string // /dev/nvme0n1
	Name     string // nvme0n1, as the smart form wants it; "" for a path of another shape
	Type     string // nvme, ssd, hdd, usb, unknown
	Model    string
	Vendor   string
	Size     *int64 // bytes
	Use      string // ZFS, LVM, mounted, partitions, …; "" is an unused disk
	RPM      *int64 // nil: solid state, or not known
	GPT      bool
	Health   DiskHealth // unknown in the form that does not wake disks
	WearLeft *int       // percent of the rated life that is left, 0..100; nil: not told
}

// A DiskHealth is a disk's own verdict about itself.
type DiskHealth string

// The verdicts. UNKNOWN behind a RAID controller or on USB is normal.
const (
	DiskUnknown DiskHealth = "unknown"
	DiskGood    DiskHealth = "good"
	DiskFailed  DiskHealth = "failed"
)

// Disks reads /nodes/N/disks/list of pvesh (PVE 7 to 9), with or without
// --skipsmart. wearout is what is left, in percent: a number, that number as
// text, or "N/A"; NVMe disks beyond their rated life have a negative one.
//
//	[{"devpath":"/dev/nvme0n1","gpt":1,"health":"PASSED","model":"M1","rpm":0,"size":1000204886016,"type":"nvme","used":"ZFS","vendor":"unknown","wearout":85}]
//
// They are sorted by path. An entry without a path is left out and noted.
func Disks(out []byte) ([]PhysicalDisk, []Note, error) {
	list, notes, err := jsonList("disks", out)
	if err != nil {
		return nil, nil, err
	}
	disks := []PhysicalDisk{}
	for _, o := range list {
		d := PhysicalDisk{
			Path: o.text("devpath"), Type: o.text("type"), Model: known(o.text("model")), Vendor: known(strings.TrimSpace(o.text("vendor"))),
			Size: positive(o.integer("size")), Use: o.text("used"), RPM: positive(o.integer("rpm")), GPT: o.yes("gpt"), Health: diskHealth(o.text("health")),
		}
		if !strings.HasPrefix(d.Path, "/dev/") {
			o.note("devpath", "a path under /dev")
			continue
		}
		d.Name = diskName(d.Path)
		if d.Type != "hdd" {
			d.WearLeft = wearLeft(o.text("wearout"))
		}
		disks = append(disks, d)
	}
	slices.SortFunc(disks, func(a, b PhysicalDisk) int { return strings.Compare(a.Path, b.Path) })
	return disks, *notes, nil
}

// known drops the word with which Proxmox says that it does not know.
func known(s string) string {
	if s == "unknown" {
		return ""
	}
	return s
}

// diskHealth: ATA and NVMe say PASSED, SCSI says OK; a failing disk's word
// begins with FAILED.
func diskHealth(word string) DiskHealth {
	word = strings.ToUpper(strings.TrimSpace(word))
	switch {
	case word == "PASSED", word == "OK":
		return DiskGood
	case strings.HasPrefix(word, "FAILED"):
		return DiskFailed
	}
	return DiskUnknown
}

// wearLeft clamps to 0..100.
func wearLeft(s string) *int {
	f := parseFloat(strings.TrimSuffix(s, "%"))
	if f == nil {
		return nil
	}
	return new(int(min(max(*f, 0), 100)))
}

// diskName accepts sda, sdaa and nvme0n1.
func diskName(path string) string {
	name := strings.TrimPrefix(path, "/dev/")
	if letters, ok := strings.CutPrefix(name, "sd"); ok && letters != "" && len(letters) <= 3 && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == "" {
		return name
	}
	controller, namespace, ok := strings.Cut(strings.TrimPrefix(name, "nvme"), "n")
	if ok && strings.HasPrefix(name, "nvme") && isShortNumber(controller) && isShortNumber(namespace) {
		return name
	}
	return ""
}

func isShortNumber(s string) bool {
	return s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == ""
}
