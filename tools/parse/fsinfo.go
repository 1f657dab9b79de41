package parse

import (
	"cmp"
	"slices"
	"strings"
)

// AgentFilesystems is what a VM's agent says about its filesystems.
type AgentFilesystems struct {
	Filesystems []AgentFilesystem // by mount point
	Total       int64             // bytes of the counted ones, each device once
	Used        int64
	Counted     int // how many were counted; 0 means that nothing was measured
}

// An AgentFilesystem is one mount inside a VM.
type AgentFilesystem struct {
	Mountpoint string
	Device     string // sda1, dm-0, \\?\Volume{…}\, //nas/media
	Type       string // as the guest writes it: ext4, NTFS
	Total      *int64 // bytes; nil: not told
	Used       *int64
	Skip       FilesystemSkip // why it does not count; "" counts
}

// A FilesystemSkip is why a mount does not count as used space of the VM.
type FilesystemSkip string

// The reasons.
const (
	SkipNot      FilesystemSkip = ""
	SkipReadOnly FilesystemSkip = "read-only"   // an image that is always 100 % full
	SkipVirtual  FilesystemSkip = "virtual"     // memory, overlays, no disk behind it
	SkipRemote   FilesystemSkip = "remote"      // somebody else's space
	SkipRepeated FilesystemSkip = "same-device" // another mount of a device that is counted
	SkipNoSize   FilesystemSkip = "no-size"
)

// FilesystemsOfAgent reads /nodes/N/qemu/ID/agent/get-fsinfo of pvesh (PVE 7 to
// 9), and the bare list that qm guest cmd prints:
//
//	{"result":[{"disk":[{"bus-type":"scsi","dev":"/dev/sda8"}],"mountpoint":"/mnt/data","name":"sda8","total-bytes":30064771072,"type":"ext4","used-bytes":6442450944}]}
//
// Bind mounts, btrfs subvolumes and datasets of one pool repeat their device:
// of those the one with the shortest mount point counts.
func FilesystemsOfAgent(out []byte) (AgentFilesystems, []Note, error) {
	const what = "agent filesystems"
	fs := AgentFilesystems{Filesystems: []AgentFilesystem{}}
	bare, err := agentResult(what, out)
	if err != nil {
		return fs, nil, err
	}
	list, notes, err := jsonList(what, bare)
	if err != nil {
		return fs, nil, err
	}
	for _, o := range list {
		if o.text("mountpoint") == "" {
			o.note("mountpoint", "a mount point")
			continue
		}
		fs.Filesystems = append(fs.Filesystems, agentFilesystem(o))
	}
	fs.count()
	return fs, *notes, nil
}

func agentFilesystem(o jsonObject) AgentFilesystem {
	f := AgentFilesystem{
		Mountpoint: o.text("mountpoint"), Device: o.text("name"), Type: o.text("type"),
		Total: positive(o.integer("total-bytes")), Used: nonNegative(o.integer("used-bytes")),
	}
	disks := o.objects("disk")
	if f.Device == "" && len(disks) > 0 {
		f.Device = disks[0].text("dev")
	}
	f.Skip = filesystemSkip(f, len(disks) > 0)
	return f
}

func filesystemSkip(f AgentFilesystem, hasDisk bool) FilesystemSkip {
	kind := strings.ToLower(f.Type)
	switch {
	case slices.Contains(remoteTypes, kind) || strings.HasPrefix(f.Device, "//"):
		return SkipRemote
	case slices.Contains(readOnlyTypes, kind):
		return SkipReadOnly
	case slices.Contains(virtualTypes, kind) || strings.HasPrefix(kind, "fuse"):
		return SkipVirtual
	case !hasDisk && !slices.Contains(diskTypesOfBSD, kind):
		return SkipVirtual
	case f.Total == nil || f.Used == nil:
		return SkipNoSize
	}
	return SkipNot
}

var (
	remoteTypes    = []string{"nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ceph", "9p", "virtiofs", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "fuse.rclone", "fuse.mergerfs", "fuse.s3fs", "afs", "davfs"}
	readOnlyTypes  = []string{"erofs", "squashfs", "iso9660", "udf", "cd9660", "cdfs", "cramfs", "romfs"}
	virtualTypes   = []string{"tmpfs", "devtmpfs", "ramfs", "overlay", "overlayfs", "aufs", "unionfs", "nullfs", "devfs", "fdescfs", "procfs", "linprocfs", "linsysfs", "proc", "sysfs", "autofs", "zram"}
	diskTypesOfBSD = []string{"ufs", "zfs"} // whose agent names no disk
)

// count sums each device once.
func (a *AgentFilesystems) count() {
	slices.SortFunc(a.Filesystems, func(x, y AgentFilesystem) int {
		return cmp.Or(strings.Compare(x.Mountpoint, y.Mountpoint), strings.Compare(x.Device, y.Device))
	})
	byDevice := map[string]int{}
	for i, f := range a.Filesystems {
		if f.Skip != SkipNot {
			continue
		}
		key := deviceKey(f)
		first, seen := byDevice[key]
		if seen && len(a.Filesystems[first].Mountpoint) <= len(f.Mountpoint) {
			a.Filesystems[i].Skip = SkipRepeated
			continue
		}
		if seen {
			a.Filesystems[first].Skip = SkipRepeated
		}
		byDevice[key] = i
	}
	for _, i := range byDevice {
		a.Total += *a.Filesystems[i].Total
		a.Used += *a.Filesystems[i].Used
		a.Counted++
	}
}

// deviceKey: the datasets of one ZFS pool share its space.
func deviceKey(f AgentFilesystem) string {
	if strings.EqualFold(f.Type, "zfs") {
		pool, _, _ := strings.Cut(f.Device, "/")
		return "zfs:" + pool
	}
	return cmp.Or(f.Device, f.Mountpoint)
}
