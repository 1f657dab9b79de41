package parse

import "strings"

// The kinds of a [GuestDisk].
const (
	DiskVolume    = "volume"    // an image or subvolume on a storage
	DiskBind      = "bind"      // a directory or file of the node
	DiskDevice    = "device"    // a device of the node, passed through
	DiskCDROM     = "cdrom"     // an image in a CD drive, the node's drive, or an empty one
	DiskCloudInit = "cloudinit" // the drive that carries the cloud-init data
	DiskEFI       = "efidisk"   // firmware variables
	DiskTPM       = "tpmstate"  // TPM state
	DiskUnused    = "unused"    // a volume that belongs to the guest but is not attached
)

// GuestDisk is one disk, mount point or drive. Bus is rootfs, mp, ide, sata,
// scsi, virtio, efidisk, tpmstate, unused or cdrom. Volume is the whole volume
// identifier, Storage its part before the colon; both are empty for a path,
// which stands in Source (cdrom: the node's own drive), and for an empty drive. Sizes are bytes as the
// configuration says, nil when it does not. A nil flag is not written, so the
// default of the bus holds: a VM disk is backed up unless Backup is false, a
// container's mount point only if it is true.
type GuestDisk struct {
	Key, Bus     string
	Index        int
	Kind         string
	Storage      string
	Volume       string
	Source       string
	MountPoint   string
	Media        string
	SizeBytes    *int64
	Backup       *bool
	ReadOnly     *bool
	Replicate    *bool
	Shared       *bool
	Quota        *bool
	ACL          *bool
	IOThread     *bool
	Discard      *bool
	SSD          *bool
	Cache        string
	Format       string
	MountOptions []string
	Options      []Option // what has no field, or a value that could not be read
}

// parseGuestDisk reads one disk line, for example
//
//	scsi0: local:200/vm-200-disk-1.qcow2,cache=writethrough,discard=on,size=32G
//	mp1: volume=/srv/a=b,mp=/media/x
//
// ok is false when the line names neither a volume nor a path nor a drive.
func parseGuestDisk(key, bus string, index int, value string) (GuestDisk, bool) {
	d := GuestDisk{Key: key, Bus: bus, Index: index}
	file := ""
	for _, o := range splitOptions(value, "file") {
		switch {
		case o.Key == "file" || o.Key == "volume":
			if file != "" {
				d.Options = append(d.Options, o)
				continue
			}
			file = o.Value
		case !d.option(o):
			d.Options = append(d.Options, o)
		}
	}
	d.locate(file)
	return d, file != ""
}

func (d *GuestDisk) option(o Option) bool {
	switch o.Key {
	case "mp":
		return setText(&d.MountPoint, o.Value)
	case "media":
		return setText(&d.Media, o.Value)
	case "size":
		return set(&d.SizeBytes, parseSize(o.Value))
	case "backup":
		return setBool(&d.Backup, o.Value)
	case "ro":
		return setBool(&d.ReadOnly, o.Value)
	case "replicate":
		return setBool(&d.Replicate, o.Value)
	case "shared":
		return setBool(&d.Shared, o.Value)
	case "quota":
		return setBool(&d.Quota, o.Value)
	case "acl":
		return setBool(&d.ACL, o.Value)
	case "iothread":
		return setBool(&d.IOThread, o.Value)
	case "ssd":
		return setBool(&d.SSD, o.Value)
	case "discard":
		return setDiscard(&d.Discard, o.Value)
	case "cache":
		return setText(&d.Cache, o.Value)
	case "format":
		return setText(&d.Format, o.Value)
	case "mountoptions":
		d.MountOptions = splitList(o.Value)
		return true
	}
	return false
}

func setDiscard(to **bool, value string) bool {
	if value == "ignore" {
		value = "off"
	}
	return setBool(to, value)
}

// locate fills the source and the kind.
func (d *GuestDisk) locate(file string) {
	storage, name, isVolume := splitVolume(file)
	switch {
	case isVolume && !strings.HasPrefix(file, "/"):
		d.Storage, d.Volume = storage, file
	case strings.HasPrefix(file, "/"), file == "cdrom":
		d.Source = file
	}
	switch {
	case d.Bus == "efidisk":
		d.Kind = DiskEFI
	case d.Bus == "tpmstate":
		d.Kind = DiskTPM
	case d.Bus == "unused":
		d.Kind = DiskUnused
	case isVolume && isCloudInit(name):
		d.Kind = DiskCloudInit
	case d.Media == "cdrom" || d.Bus == "cdrom" || file == "none" || file == "cdrom":
		d.Kind = DiskCDROM
	case strings.HasPrefix(file, "/dev/"):
		d.Kind = DiskDevice
	case strings.HasPrefix(file, "/"):
		d.Kind = DiskBind
	default:
		d.Kind = DiskVolume
	}
}

// isCloudInit tells the volumes that qemu-server makes for cloud-init:
// vm-203-cloudinit or 203/vm-203-cloudinit.qcow2.
func isCloudInit(volume string) bool {
	volume = volume[strings.LastIndexByte(volume, '/')+1:]
	for _, format := range []string{".qcow2", ".raw", ".vmdk", ".qed"} {
		volume = strings.TrimSuffix(volume, format)
	}
	if volume == "cloudinit" {
		return true
	}
	id, ok := strings.CutPrefix(volume, "vm-")
	id, ok2 := strings.CutSuffix(id, "-cloudinit")
	return ok && ok2 && id != "" && strings.Trim(id, "0123456789") == ""
}
