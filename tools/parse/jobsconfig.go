package parse

import "strings"

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
