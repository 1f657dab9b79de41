package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// Proxmox's own schedule of a replication job that names none.
const replicationSchedule = "*/15"

func (j Judge) auditReplication(v AuditFacts) []*Finding {
	nodes := map[int]string{}
	for _, g := range v.Guests {
		nodes[g.VMID] = g.Node
	}
	var out []*Finding
	for _, job := range v.Replication {
		subject := v.guest(job.VMID)
		what := fmt.Sprintf("replication %s to %s", Clean(job.ID), Clean(job.Target))
		node := cmp.Or(nodes[job.VMID], job.Source)
		switch {
		case job.Disabled:
			out = append(out, j.Find("REPL_DISABLED", "", subject, what+" is disabled", Evidence{Name: "job", Value: Clean(job.ID)}))
		case v.Nodes[node].ReplRead && job.RemoveJob == "":
			out = append(out, j.replicated(v, subject, what, job, v.Nodes[node].Replication))
		}
	}
	return out
}

func (j Judge) replicated(v AuditFacts, subject, what string, job parse.ReplicationJob, states []parse.ReplicationState) *Finding {
	i := slices.IndexFunc(states, func(s parse.ReplicationState) bool { return s.VMID == job.VMID && s.Target == job.Target })
	if i < 0 {
		return j.Find("REPL_NEVER", "", subject, what+" has never run", Evidence{Name: "job", Value: Clean(job.ID)})
	}
	s := states[i]
	last := Evidence{Name: "last sync", Value: "never"}
	if s.LastSync != nil {
		last.Value = At(*s.LastSync)
	}
	schedule := cmp.Or(job.Schedule, replicationSchedule)
	interval, readable := Interval(schedule)
	switch {
	case s.FailCount != nil && *s.FailCount > 0:
		return j.Measure("REPL_FAILED", subject, fmt.Sprintf("%s failed: %s", what, cmp.Or(Clean(s.Error), "no reason is told")), "failures", float64(*s.FailCount), last)
	case s.LastSync == nil:
		return j.Find("REPL_NEVER", "", subject, what+" has never run", Evidence{Name: "job", Value: Clean(job.ID)})
	case readable && interval > 0:
		ratio := float64(age(v.Now, *s.LastSync)) / float64(interval)
		return j.Measure("REPL_LAG", subject, what+" is late", "age", ratio, last, Evidence{Name: "schedule", Value: Clean(schedule)})
	case age(v.Now, *s.LastSync) > time.Hour:
		return j.Find("REPL_LAG", Info, subject, what+" last ran more than an hour ago; its schedule cannot be read", last, Evidence{Name: "schedule", Value: Clean(schedule)})
	}
	return nil
}

func (j Judge) auditCertificates(v AuditFacts) []*Finding {
	var out []*Finding
	for node, n := range v.Nodes {
		for _, c := range n.Certs {
			if c.NotAfter == nil {
				continue
			}
			days := c.NotAfter.Sub(v.Now).Hours() / 24
			message := fmt.Sprintf("certificate %s ends on %s", Clean(c.File), c.NotAfter.Format(time.DateOnly))
			if days < 0 {
				message = fmt.Sprintf("certificate %s ended on %s", Clean(c.File), c.NotAfter.Format(time.DateOnly))
			}
			out = append(out, j.Measure("CERT_EXPIRING", v.subject("node", node), message, "days left", days, Evidence{Name: "file", Value: Clean(c.File)}))
		}
	}
	return out
}

// A reference is a volume that a configuration names: by its storage, and of a
// storage that is not shared by the guest's node.
type reference struct{ where, node, name string }

// where tells storages apart by what they lie on, for two may show one volume.
func whereOf(c parse.StorageConfig) string {
	switch c.Type {
	case "zfspool", "rbd":
		return c.Type + " " + c.Pool
	case "lvmthin", "lvm":
		return "vg " + c.VGName
	case "dir", "btrfs":
		return "dir " + c.Path
	case "nfs":
		return "nfs " + c.Server + " " + c.Export
	case "cifs":
		return "cifs " + c.Server + " " + c.Share
	}
	return c.ID
}

func (v AuditFacts) references() map[reference]bool {
	storages := map[string]parse.StorageConfig{}
	for _, c := range v.Storages {
		storages[c.ID] = c
	}
	out := map[reference]bool{}
	add := func(g AuditGuest, volume string) {
		id, path, ok := strings.Cut(volume, ":")
		c, known := storages[id]
		if !ok || !known {
			return
		}
		r := reference{where: whereOf(c), name: path[strings.LastIndexByte(path, '/')+1:]}
		if !c.Shared {
			r.node = g.Node
		}
		out[r] = true
		if i := strings.IndexByte(path, '/'); i > 0 { // a linked clone names its base first
			r.name = path[:i]
			out[r] = true
		}
	}
	section := func(g AuditGuest, s parse.GuestSettings) {
		add(g, s.VMState)
		for _, d := range s.Disks {
			add(g, d.Volume)
		}
	}
	for _, g := range v.Guests {
		section(g, g.Config.Current)
		if g.Config.Pending != nil {
			section(g, g.Config.Pending.Settings)
		}
		for _, snap := range g.Config.Snapshots {
			section(g, snap.Settings)
		}
		for _, image := range g.Config.FleecingImages {
			add(g, image)
		}
	}
	return out
}

// orphanDisks finds volumes that nobody names. A guest that is being moved or
// made, a copy that replication keeps, and a backup's own image are none.
func (j Judge) orphanDisks(v AuditFacts) []*Finding {
	if !v.Whole || len(v.Volumes) == 0 {
		return nil
	}
	named := v.references()
	busy, copies := map[int]bool{}, map[string]bool{}
	for _, g := range v.Guests {
		busy[g.VMID] = g.Lock != "" && g.Lock != "suspended"
	}
	for _, r := range v.Replication {
		copies[fmt.Sprint(r.VMID, " ", r.Target)] = true
	}
	var out []*Finding
	seen := map[reference]bool{}
	for _, src := range v.Volumes {
		for _, vol := range src.Content.Volumes {
			r := reference{where: whereOf(src.Storage), name: vol.Name}
			if !src.Storage.Shared {
				r.node = src.Node
			}
			switch {
			case vol.VMID == nil || named[r] || seen[r] || busy[*vol.VMID] || strings.Contains(vol.Name, "-fleece-"):
				continue
			case !src.Storage.Shared && copies[fmt.Sprint(*vol.VMID, " ", src.Node)]:
				continue
			case vol.Created != nil && v.Now.Sub(*vol.Created) < time.Hour:
				continue
			}
			seen[r] = true
			out = append(out, j.orphanDisk(v, src, vol))
		}
	}
	return out
}

func (j Judge) orphanDisk(v AuditFacts, src VolumeSource, vol parse.Volume) *Finding {
	parts := []string{"storage", src.Node, Clean(src.Storage.ID)}
	if src.Storage.Shared {
		parts = []string{"storage", Clean(src.Storage.ID)}
	}
	evidence := []Evidence{{Name: "volume", Value: Clean(vol.Volume)}, {Name: "named for guest", Value: fmt.Sprint(*vol.VMID)}}
	if vol.Size != nil {
		evidence = append(evidence, Evidence{"size_bytes", fmt.Sprint(*vol.Size), "bytes"})
	}
	message := fmt.Sprintf("volume %s belongs to no guest of the cluster", Clean(vol.Volume))
	if src.Storage.Shared {
		message += " (another cluster that uses the storage may own it)"
	}
	return j.Find("DISK_ORPHAN", "", v.subject(parts...), message, evidence...)
}

// NodeFindings are a node's own findings, of its capacity.
func (j Judge) NodeFindings(v NodeView) []*Finding {
	st := *v.Cluster.State
	st.Guests = slices.DeleteFunc(slices.Clone(st.Guests), func(g parse.GuestRef) bool { return g.Node != v.Node })
	v.Cluster.State, v.Cluster.Configs = &st, nil
	var out []*Finding
	for _, f := range NodeCapacity(v, j).Findings {
		if v.Cluster.Name != "" {
			f.Subject = v.Cluster.Name + "/" + f.Subject
		}
		out = append(out, &f)
	}
	return out
}

// OncePerBackup drops a node's finding about a failed backup where the guests'
// own findings of that node say which failed and why.
func OncePerBackup(all []*Finding) []*Finding {
	const code = "BACKUP_JOB_FAILED"
	told := map[string]bool{}
	for _, f := range all {
		if f != nil && f.Code == code && strings.Contains("/"+f.Subject, "/guest/") {
			for _, e := range f.Evidence {
				if e.Name == "node" {
					told[e.Value] = true
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(f *Finding) bool {
		if f == nil || f.Code != code {
			return f == nil
		}
		i := strings.LastIndex("/"+f.Subject, "/node/")
		return i >= 0 && told[f.Subject[i+len("node/"):]]
	})
}

// Holds reports whether a storage may hold a kind of content.
func Holds(s parse.StorageConfig, kind string) bool { return slices.Contains(contentOf(s), kind) }
