package parse

import (
	"slices"
	"strings"
)

// ClusterConfigs is what storage.cfg, jobs.cfg, replication.cfg and the HA and
// mapping files say, each list in the order of its file. A file that is missing
// has an empty list.
type ClusterConfigs struct {
	Storages        []StorageConfig
	BackupJobs      []BackupJob
	ReplicationJobs []ReplicationJob
	HAResources     []HAResource
	HAGroups        []HAGroup // PVE 7 and 8
	HARules         []HARule  // since PVE 9
	Mappings        []ResourceMapping
	OtherSections   []string // TYPE: ID of sections that are not read
	BadLines        []int    // numbers of lines that could not be read
}

// StorageConfig is one storage of the cluster. Keys that are not read are kept
// by name only, here and below, because a plugin may keep a password there. Content is empty when the key is
// not written, so the type's default holds. Shared is true by type (nfs, pbs
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

// BackupJob is one vzdump job. Enabled is true unless the job says otherwise.
// A job without Schedule and without StartTime never runs by itself. VMIDs,
// All with Exclude, and Pool are the three ways to choose guests; Node limits
// the job to guests that are on that node when it runs.
type BackupJob struct {
	ID              string
	Enabled         bool
	Schedule        string // calendar event
	StartTime, DOW  string // the form before PVE 7.1
	All             bool
	VMIDs           []int
	Exclude         []int
	Pool            string
	Node            string
	Storage         string
	DumpDir         string
	Mode            string
	Compress        string
	Prune           []Option
	MaxFiles        *int64
	Remove          *bool
	Protected       bool
	RepeatMissed    bool
	Fleecing        bool
	FleecingStorage string
	ExcludePath     []string
	OtherKeys       []string
}

// ReplicationJob is one storage replication job. Schedule empty means Proxmox's
// default, every 15 minutes. Rate is megabytes a second. RemoveJob is set while
// the job waits for its removal (local or full).
type ReplicationJob struct {
	ID             string
	VMID           int // 0 when the identifier has none
	Type           string
	Source, Target string
	Schedule       string
	Rate           *float64
	Disabled       bool
	RemoveJob      string
	OtherKeys      []string
}

// HAResource is one guest under HA. SID is ct:101 or vm:200. State is what is
// requested, empty when not written (started).
type HAResource struct {
	SID         string
	VMID        int // 0 when the name is no number
	State       string
	Group       string
	MaxRelocate *int64
	MaxRestart  *int64
	Failback    *bool
	OtherKeys   []string
}

// HANode is a node with the priority that a group or rule gives it.
type HANode struct {
	Name     string
	Priority *int64
}

// HAGroup is a set of nodes for HA resources.
type HAGroup struct {
	ID         string
	Nodes      []HANode
	Restricted bool
	NoFailback bool
	OtherKeys  []string
}

// HARule ties resources to nodes (node-affinity) or to each other
// (resource-affinity, Affinity positive or negative).
type HARule struct {
	ID, Type  string
	Resources []string // SIDs
	Nodes     []HANode
	Affinity  string
	Strict    bool
	Disabled  bool
	OtherKeys []string
}

// ResourceMapping is a cluster-wide name for devices or directories of nodes.
// Kind is pci, usb or directory.
type ResourceMapping struct {
	Kind, ID    string
	Entries     []MappingEntry
	MDev        bool
	LiveMigrate bool
	OtherKeys   []string
}

// MappingEntry is what the name stands for on one node. Path is empty for a USB
// device that is named by its ID alone.
type MappingEntry struct {
	Node, Path, ID string
	Options        []Option
}

const (
	storagePath     = "/etc/pve/storage.cfg"
	jobsPath        = "/etc/pve/jobs.cfg"
	replicationPath = "/etc/pve/replication.cfg"
	haResourcesPath = "/etc/pve/ha/resources.cfg"
	haGroupsPath    = "/etc/pve/ha/groups.cfg"
	haRulesPath     = "/etc/pve/ha/rules.cfg"
	pciMappingPath  = "/etc/pve/mapping/pci.cfg"
	usbMappingPath  = "/etc/pve/mapping/usb.cfg"
	dirMappingPath  = "/etc/pve/mapping/directory.cfg"
)

// ParseClusterConfigs reads the form cluster-configs. An empty output is a
// cluster without any of the files. A line that cannot be read is numbered in
// BadLines and costs no other; an output without any readable line is an error.
//
// Program: grep -asH on the files of PVE 7.4 to 9.2. Input:
//
//	/etc/pve/storage.cfg:nfs: nas-nfs
//	/etc/pve/storage.cfg:	server 192.168.20.50
func ParseClusterConfigs(out []byte) (*ClusterConfigs, error) {
	sections, bad := readSections(out, storagePath, jobsPath, replicationPath, haResourcesPath,
		haGroupsPath, haRulesPath, pciMappingPath, usbMappingPath, dirMappingPath)
	if len(sections) == 0 && len(bad) > 0 {
		return nil, &LineError{Subject: "cluster configs", Lines: bad, Want: "/etc/pve/FILE.cfg:LINE"}
	}
	c := &ClusterConfigs{
		Storages: []StorageConfig{}, BackupJobs: []BackupJob{}, ReplicationJobs: []ReplicationJob{},
		HAResources: []HAResource{}, HAGroups: []HAGroup{}, HARules: []HARule{}, Mappings: []ResourceMapping{}, BadLines: bad,
	}
	for _, s := range sections {
		c.add(s)
	}
	slices.Sort(c.BadLines)
	return c, nil
}

func (c *ClusterConfigs) add(s configSection) {
	switch {
	case s.file == storagePath:
		c.Storages = append(c.Storages, storageConfig(s, &c.BadLines))
	case s.file == jobsPath && s.kind == "vzdump":
		c.BackupJobs = append(c.BackupJobs, backupJob(s, &c.BadLines))
	case s.file == replicationPath:
		c.ReplicationJobs = append(c.ReplicationJobs, replicationJob(s, &c.BadLines))
	case s.file == haResourcesPath:
		c.HAResources = append(c.HAResources, haResource(s, &c.BadLines))
	case s.file == haGroupsPath && s.kind == "group":
		c.HAGroups = append(c.HAGroups, haGroup(s, &c.BadLines))
	case s.file == haRulesPath:
		c.HARules = append(c.HARules, haRule(s, &c.BadLines))
	case s.file == pciMappingPath:
		c.Mappings = append(c.Mappings, resourceMapping("pci", s, &c.BadLines))
	case s.file == usbMappingPath:
		c.Mappings = append(c.Mappings, resourceMapping("usb", s, &c.BadLines))
	case s.file == dirMappingPath:
		c.Mappings = append(c.Mappings, resourceMapping("directory", s, &c.BadLines))
	default:
		c.OtherSections = append(c.OtherSections, s.kind+": "+s.id)
	}
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

func backupJob(s configSection, bad *[]int) BackupJob {
	j := BackupJob{ID: s.id, Enabled: true}
	texts := map[string]*string{
		"schedule": &j.Schedule, "starttime": &j.StartTime, "dow": &j.DOW, "pool": &j.Pool, "node": &j.Node,
		"storage": &j.Storage, "dumpdir": &j.DumpDir, "mode": &j.Mode, "compress": &j.Compress,
	}
	flags := map[string]*bool{"enabled": &j.Enabled, "all": &j.All, "protected": &j.Protected, "repeat-missed": &j.RepeatMissed}
	s.read(bad, func(key, value string) bool {
		switch {
		case texts[key] != nil:
			*texts[key] = value
		case flags[key] != nil:
			return setSwitch(flags[key], value)
		case key == "vmid":
			return setVMIDs(&j.VMIDs, value)
		case key == "exclude":
			return setVMIDs(&j.Exclude, value)
		case key == "exclude-path":
			j.ExcludePath = append(j.ExcludePath, splitList(value)...)
		case key == "prune-backups":
			j.Prune = splitOptions(value, "")
		case key == "maxfiles":
			return setInt(&j.MaxFiles, value)
		case key == "remove":
			return setBool(&j.Remove, value)
		case key == "fleecing":
			return j.setFleecing(value)
		default:
			j.OtherKeys = appendOnce(j.OtherKeys, key)
		}
		return true
	})
	return j
}

func (j *BackupJob) setFleecing(value string) bool {
	for _, o := range splitOptions(value, "enabled") {
		switch o.Key {
		case "enabled":
			if !setFlag(&j.Fleecing, o.Value) {
				return false
			}
		case "storage":
			j.FleecingStorage = o.Value
		}
	}
	return true
}

func replicationJob(s configSection, bad *[]int) ReplicationJob {
	j := ReplicationJob{ID: s.id, Type: s.kind}
	guest, _, _ := strings.Cut(s.id, "-")
	if n := parseInt(guest); n != nil {
		j.VMID = int(*n)
	}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "source":
			return setText(&j.Source, value)
		case "target":
			return setText(&j.Target, value)
		case "schedule":
			return setText(&j.Schedule, value)
		case "rate":
			return setFloat(&j.Rate, value)
		case "disable":
			return setSwitch(&j.Disabled, value)
		case "remove_job":
			return setText(&j.RemoveJob, value)
		}
		j.OtherKeys = appendOnce(j.OtherKeys, key)
		return true
	})
	return j
}

func haResource(s configSection, bad *[]int) HAResource {
	r := HAResource{SID: s.kind + ":" + s.id}
	if n := parseInt(s.id); n != nil {
		r.VMID = int(*n)
	}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "state":
			return setText(&r.State, value)
		case "group":
			return setText(&r.Group, value)
		case "max_relocate":
			return setInt(&r.MaxRelocate, value)
		case "max_restart":
			return setInt(&r.MaxRestart, value)
		case "failback":
			return setBool(&r.Failback, value)
		}
		r.OtherKeys = appendOnce(r.OtherKeys, key)
		return true
	})
	return r
}

func haGroup(s configSection, bad *[]int) HAGroup {
	g := HAGroup{ID: s.id}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "nodes":
			g.Nodes = haNodes(value)
			return true
		case "restricted":
			return setSwitch(&g.Restricted, value)
		case "nofailback":
			return setSwitch(&g.NoFailback, value)
		}
		g.OtherKeys = appendOnce(g.OtherKeys, key)
		return true
	})
	return g
}

func haRule(s configSection, bad *[]int) HARule {
	r := HARule{ID: s.id, Type: s.kind}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "resources":
			r.Resources = splitList(value)
			return true
		case "nodes":
			r.Nodes = haNodes(value)
			return true
		case "affinity":
			return setText(&r.Affinity, value)
		case "strict":
			return setSwitch(&r.Strict, value)
		case "disable":
			return setSwitch(&r.Disabled, value)
		}
		r.OtherKeys = appendOnce(r.OtherKeys, key)
		return true
	})
	return r
}

// haNodes reads pve1:2,pve3.
func haNodes(value string) []HANode {
	nodes := []HANode{}
	for _, s := range splitList(value) {
		name, priority, _ := strings.Cut(s, ":")
		nodes = append(nodes, HANode{Name: name, Priority: parseInt(priority)})
	}
	return nodes
}

func resourceMapping(kind string, s configSection, bad *[]int) ResourceMapping {
	m := ResourceMapping{Kind: kind, ID: s.id, Entries: []MappingEntry{}}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "map":
			e := mappingEntry(value)
			m.Entries = append(m.Entries, e)
			return e.Node != ""
		case "mdev":
			return setSwitch(&m.MDev, value)
		case "live-migration-capable":
			return setSwitch(&m.LiveMigrate, value)
		}
		m.OtherKeys = appendOnce(m.OtherKeys, key)
		return true
	})
	return m
}

func mappingEntry(value string) MappingEntry {
	var e MappingEntry
	for _, o := range splitOptions(value, "") {
		switch o.Key {
		case "node":
			e.Node = o.Value
		case "path":
			e.Path = o.Value
		case "id":
			e.ID = o.Value
		default:
			e.Options = append(e.Options, o)
		}
	}
	return e
}
