package parse

// StorageConfig is one storage of the cluster. Keys that are not read are kept
// by name only, here and below, because a plugin may keep a password there.
// Content is empty when the key is not written, so the type's default holds.
// Shared is true by type (nfs, pbs
// and so on) or by its flag. Nodes empty means every node. MustBeMounted is the
// path that has to be a mount point before the storage counts as active, empty
// when that is not checked.
type StorageConfig struct {
	ID, Type          string
	Content           []string
	Nodes             []string
	Disabled          bool
	Shared            bool
	Path              string
	MustBeMounted     string
	Mountpoint        string // zfspool
	Server, Server2   string
	Export            string // nfs
	Share             string // cifs
	Datastore         string // pbs
	Namespace         string // pbs
	Pool              string // zfspool, rbd
	DataPool, FSName  string // rbd, cephfs
	VGName, ThinPool  string // lvm, lvmthin
	Base              string // lvm on iscsi
	Portal, Target    string // iscsi
	Volume            string // glusterfs
	Subdir            string
	Format            string
	Prune             []Option // keep-last and so on
	MaxFiles          *int64   // the older form of Prune
	MaxProtected      *int64   // -1: no limit
	KRBD, Sparse      bool
	SnapshotAsVolumes bool
	OtherKeys         []string // keys that are not read, by name
}

// sharedTypes are shared without a flag (pve-storage, Plugin.pm).
var sharedTypes = map[string]bool{
	"iscsi": true, "nfs": true, "cifs": true, "rbd": true, "cephfs": true, "iscsidirect": true,
	"glusterfs": true, "zfs": true, "drbd": true, "pbs": true, "esxi": true,
}

func storageConfig(s configSection, bad *[]int) StorageConfig {
	c := StorageConfig{ID: s.id, Type: s.kind}
	mounted := ""
	texts := map[string]*string{
		"path": &c.Path, "mountpoint": &c.Mountpoint, "server": &c.Server, "server2": &c.Server2, "export": &c.Export,
		"share": &c.Share, "datastore": &c.Datastore, "namespace": &c.Namespace, "pool": &c.Pool, "data-pool": &c.DataPool,
		"fs-name": &c.FSName, "vgname": &c.VGName, "thinpool": &c.ThinPool, "base": &c.Base, "portal": &c.Portal,
		"target": &c.Target, "volume": &c.Volume, "subdir": &c.Subdir, "format": &c.Format, "is_mountpoint": &mounted,
	}
	flags := map[string]*bool{
		"disable": &c.Disabled, "shared": &c.Shared, "krbd": &c.KRBD, "sparse": &c.Sparse,
		"snapshot-as-volume-chain": &c.SnapshotAsVolumes,
	}
	s.read(bad, func(key, value string) bool {
		switch {
		case texts[key] != nil:
			*texts[key] = value
		case flags[key] != nil:
			return setSwitch(flags[key], value)
		case key == "content":
			c.Content = splitSet(value)
		case key == "nodes":
			c.Nodes = splitSet(value)
		case key == "prune-backups":
			c.Prune = splitOptions(value, "")
		case key == "maxfiles":
			return setInt(&c.MaxFiles, value)
		case key == "max-protected-backups":
			return setInt(&c.MaxProtected, value)
		default:
			c.OtherKeys = appendOnce(c.OtherKeys, key)
		}
		return true
	})
	c.Shared = c.Shared || sharedTypes[c.Type]
	c.MustBeMounted = mustBeMounted(mounted, c.Path)
	return c
}

// mustBeMounted reads is_mountpoint: yes, no, or the path itself.
func mustBeMounted(value, path string) string {
	if yes := parseBool(value); yes != nil {
		if *yes {
			return path
		}
		return ""
	}
	return value
}
