package parse

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// StorageContent is what one storage holds, of the kinds that were asked for.
type StorageContent struct {
	Archives    []Archive // by guest and time
	Unfinished  []Archive // PBS: backups that are running or broke off; nothing to restore from
	HostBackups int       // PBS: backups of hosts, which are no guests
	Volumes     []Volume  // images and container volumes, by name
	Other       int       // ISO images, templates, snippets
	Unread      int       // entries without a volume name, which may be anything
}

// An Archive is one backup of one guest.
type Archive struct {
	Volume       string // "usb-backup:backup/vzdump-lxc-101-2026_11_27-02_30_01.tar.zst"
	Storage      string
	VMID         *int       // nil: the name tells no guest
	Type         string     // lxc or qemu; "" when not told
	Created      *time.Time // UTC
	Size         *int64     // bytes
	Format       string     // tar.zst, vma.zst, pbs-ct, pbs-vm
	Notes        string     // text by people, several lines on PBS
	Protected    bool
	Encrypted    bool
	Verification Verification
}

// A Verification is what a PBS found when it last read an archive again.
type Verification string

// The results; the first means that nobody has looked yet, which is not "failed".
const (
	VerifyNone   Verification = ""
	VerifyOK     Verification = "ok"
	VerifyFailed Verification = "failed"
)

// A Volume is one disk image or container volume.
type Volume struct {
	Volume  string // "local-lvm:vm-103-disk-0"
	Storage string
	Name    string // without the storage and the folder: "vm-103-disk-0"
	Kind    string // images or rootdir, as the storage calls it
	VMID    *int   // its owner by name; nil: the name tells none
	Format  string // raw, qcow2, vmdk, subvol
	Size    *int64 // bytes, as configured
	Used    *int64 // bytes; nil: not measured
	Created *time.Time
	Parent  string // the volume that a linked clone needs
}

// Content reads /nodes/N/storage/S/content of pvesh (PVE 7 to 9), for any
// content kind. The time is a number, or text on LVM; sizes are bytes.
//
//	[{"content":"backup","ctime":1795746601,"format":"tar.zst","notes":"web-proxy","size":183500,"subtype":"lxc","vmid":101,"volid":"usb-backup:backup/vzdump-lxc-101-2026_11_27-02_30_01.tar.zst"}]
//
// An empty list is an answer. An entry without a volume name is left out and noted.
func Content(out []byte) (StorageContent, []Note, error) {
	c := StorageContent{Archives: []Archive{}, Unfinished: []Archive{}, Volumes: []Volume{}}
	list, notes, err := jsonList("storage content", out)
	if err != nil {
		return c, nil, err
	}
	for _, o := range list {
		c.add(o)
	}
	byAge := func(a, b Archive) int {
		return cmp.Or(compareInts(a.VMID, b.VMID), compareTimes(a.Created, b.Created), strings.Compare(a.Volume, b.Volume))
	}
	slices.SortFunc(c.Archives, byAge)
	slices.SortFunc(c.Unfinished, byAge)
	slices.SortFunc(c.Volumes, func(a, b Volume) int { return strings.Compare(a.Volume, b.Volume) })
	return c, *notes, nil
}

func (c *StorageContent) add(o jsonObject) {
	volid := o.text("volid")
	storage, path, ok := strings.Cut(volid, ":")
	if !ok || storage == "" || path == "" {
		o.note("volid", "STORAGE:NAME")
		c.Unread++
		return
	}
	switch kind := o.text("content"); {
	case kind == "backup" || kind == "" && strings.HasPrefix(path, "backup/"):
		c.addArchive(o, volid, storage, path)
	case kind == "images" || kind == "rootdir":
		c.Volumes = append(c.Volumes, volume(o, volid, storage, path, kind))
	default:
		c.Other++
	}
}

func (c *StorageContent) addArchive(o jsonObject, volid, storage, path string) {
	name := archiveName(path)
	if name.host {
		c.HostBackups++
		return
	}
	a := Archive{
		Volume: volid, Storage: storage, VMID: guestNumber(o.integer("vmid")), Type: cmp.Or(name.kind, guestKind(o.text("subtype"))),
		Created: o.seconds("ctime"), Size: nonNegative(o.integer("size")), Format: o.text("format"), Notes: o.text("notes"),
		Protected: o.yes("protected"), Encrypted: encrypted(o),
	}
	if name.vmid != nil {
		a.VMID = name.vmid
	}
	if a.Created == nil {
		a.Created = name.created
	}
	if v, ok := o.object("verification"); ok {
		a.Verification = verification(v.text("state"))
	}
	// A PBS gives size 1 to a snapshot without a manifest.
	if unfinished := a.Size != nil && *a.Size <= 1 && (name.pbs || strings.HasPrefix(a.Format, "pbs-")); unfinished {
		c.Unfinished = append(c.Unfinished, a)
		return
	}
	c.Archives = append(c.Archives, a)
}

// encrypted: PBS gives "1" or the key's fingerprint.
func encrypted(o jsonObject) bool {
	s := o.text("encrypted")
	return s != "" && s != "0" && s != "false"
}

func verification(state string) Verification {
	switch strings.ToLower(state) {
	case "ok":
		return VerifyOK
	case "failed":
		return VerifyFailed
	}
	return VerifyNone
}

type nameOfArchive struct {
	vmid      *int
	kind      string
	created   *time.Time // PBS names hold UTC; vzdump names hold the node's local time, which is not used
	pbs, host bool
}

// archiveName reads backup/vzdump-lxc-101-2026_11_27-02_30_01.tar.zst and
// backup/ct/101/2026-11-29T01:00:05Z.
func archiveName(path string) nameOfArchive {
	path = strings.TrimPrefix(path, "backup/")
	if f := strings.Split(path, "/"); len(f) == 3 {
		n := nameOfArchive{pbs: true, host: f[0] == "host", kind: guestKind(f[0]), created: zonedTime(f[2])}
		if !n.host {
			n.vmid = guestNumber(parseInt(f[1]))
		}
		return n
	}
	f := strings.SplitN(path, "-", 4)
	if len(f) < 3 || f[0] != "vzdump" {
		return nameOfArchive{}
	}
	return nameOfArchive{kind: guestKind(f[1]), vmid: guestNumber(parseInt(f[2]))}
}

func guestKind(s string) string {
	switch s {
	case "lxc", "ct", "openvz":
		return "lxc"
	case "qemu", "vm":
		return "qemu"
	}
	return ""
}

func guestNumber(n *int64) *int {
	if n == nil || *n < 100 || *n > 999999999 {
		return nil
	}
	return new(int(*n))
}

func volume(o jsonObject, volid, storage, path, kind string) Volume {
	v := Volume{
		Volume: volid, Storage: storage, Name: path[strings.LastIndexByte(path, '/')+1:], Kind: kind, VMID: guestNumber(o.integer("vmid")),
		Format: o.text("format"), Size: nonNegative(o.integer("size")), Used: nonNegative(o.integer("used")),
		Created: o.seconds("ctime"), Parent: o.text("parent"),
	}
	if v.VMID == nil {
		v.VMID = volumeOwner(v.Name)
	}
	return v
}

// volumeOwner reads the guest out of vm-201-disk-0, base-105-disk-0.raw,
// subvol-104-disk-0, basevol-9000-disk-0, vm-203-state-x.
func volumeOwner(name string) *int {
	f := strings.SplitN(name, "-", 3)
	if len(f) < 3 {
		return nil
	}
	switch f[0] {
	case "vm", "base", "subvol", "basevol":
		return guestNumber(parseInt(f[1]))
	}
	return nil
}

func compareInts(a, b *int) int {
	if a == nil || b == nil {
		return cmp.Compare(nilLast(a == nil), nilLast(b == nil))
	}
	return cmp.Compare(*a, *b)
}

func compareTimes(a, b *time.Time) int {
	if a == nil || b == nil {
		return cmp.Compare(nilLast(a == nil), nilLast(b == nil))
	}
	return a.Compare(*b)
}

func nilLast(isNil bool) int {
	if isNil {
		return 1
	}
	return 0
}
