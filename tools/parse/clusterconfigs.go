package parse

import "slices"

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
