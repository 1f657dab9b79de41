package parse

import (
	"fmt"
	"slices"
	"strings"
)

// ZPoolStates reads grep -rs --include=state . /proc/spl/kstat/zfs: the state of
// each imported pool, without a lock. No pool, or no ZFS, is no line.
//
//	/proc/spl/kstat/zfs/rpool/state:ONLINE
func ZPoolStates(out []byte) (map[string]string, error) {
	const prefix = "/proc/spl/kstat/zfs/"
	states := map[string]string{}
	line := 0
	for raw := range strings.Lines(string(out)) {
		line++
		text := strings.TrimSpace(raw)
		if text == "" {
			continue
		}
		path, state, ok := strings.Cut(text, "/state:")
		pool, under := strings.CutPrefix(path, prefix)
		if !ok || !under || pool == "" || strings.Contains(pool, "/") || state == "" {
			return nil, fmt.Errorf("zpool states: line %d: want %sPOOL/state:STATE", line, prefix)
		}
		states[pool] = state
	}
	return states, nil
}

// A ZPoolSize is one pool's space, in bytes of the raw disks.
type ZPoolSize struct {
	Name          string
	Size          *int64
	Allocated     *int64
	Free          *int64
	Fragmentation *float64 // share, 0..1
	Capacity      *float64 // share, 0..1
	Health        string
	ReadOnly      bool
}

// ZPoolList reads zpool list -Hp -o name,size,allocated,free,fragmentation,
// capacity,health,readonly (OpenZFS 0.8 to 2.4): tabs between, "-" for none.
//
//	rpool	1992864825344	412316860416	1580547964928	7	20	ONLINE	off
func ZPoolList(out []byte) ([]ZPoolSize, error) {
	pools := []ZPoolSize{}
	err := tabbed("zpool list", out, 8, func(f []string) bool {
		p := ZPoolSize{
			Name: f[0], Size: parseInt(f[1]), Allocated: parseInt(f[2]), Free: parseInt(f[3]), Fragmentation: zfsPercent(f[4]), Capacity: zfsPercent(f[5]),
			Health: f[6], ReadOnly: f[7] == "on",
		}
		pools = append(pools, p)
		return p.Name != "" && (p.Size != nil || f[1] == "-")
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pools, func(a, b ZPoolSize) int { return strings.Compare(a.Name, b.Name) })
	return pools, nil
}

func zfsPercent(s string) *float64 {
	f := parseFloat(strings.TrimSuffix(s, "%"))
	if f == nil || *f < 0 {
		return nil
	}
	return new(*f / 100)
}

// A Dataset is one ZFS filesystem or volume, in bytes.
type Dataset struct {
	Name            string
	Type            string // filesystem or volume
	Used            *int64 // with children and snapshots
	Available       *int64
	Referenced      *int64
	Quota           *int64 // nil: none
	RefQuota        *int64
	VolumeSize      *int64 // volumes
	UsedBySnapshots *int64
	Mountpoint      string // "" when not mounted by ZFS: none, legacy, a volume
}

// ZFSList reads zfs list -Hp -t filesystem,volume -o name,type,used,avail,refer,
// quota,refquota,volsize,usedbysnapshots,mountpoint (OpenZFS 0.8 to 2.4): tabs
// between, "-" and, for a quota, 0 for none.
//
//	rpool/data/subvol-104-disk-0	filesystem	1503238553	32856499815	1503238553	0	34359738368	-	0	/rpool/data/subvol-104-disk-0
func ZFSList(out []byte) ([]Dataset, error) {
	datasets := []Dataset{}
	err := tabbed("zfs list", out, 10, func(f []string) bool {
		d := Dataset{
			Name: f[0], Type: f[1], Used: parseInt(f[2]), Available: parseInt(f[3]), Referenced: parseInt(f[4]), Quota: positive(parseInt(f[5])),
			RefQuota: positive(parseInt(f[6])), VolumeSize: positive(parseInt(f[7])), UsedBySnapshots: parseInt(f[8]),
		}
		if strings.HasPrefix(f[9], "/") {
			d.Mountpoint = f[9]
		}
		datasets = append(datasets, d)
		return d.Name != "" && d.Type != "" && (d.Used != nil || f[2] == "-")
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(datasets, func(a, b Dataset) int { return strings.Compare(a.Name, b.Name) })
	return datasets, nil
}

// tabbed calls read for each line. Scripts get these lines exactly, so one that
// has another shape means that the whole output is something else.
func tabbed(what string, out []byte, columns int, read func([]string) bool) error {
	line := 0
	for raw := range strings.Lines(string(out)) {
		line++
		raw = strings.TrimRight(raw, "\r\n")
		if raw == "" || raw == "no pools available" || raw == "no datasets available" {
			continue
		}
		f := strings.Split(raw, "\t")
		if len(f) != columns || !read(f) {
			return fmt.Errorf("%s: line %d: want %d columns with a name and bytes, got %d", what, line, columns, len(f))
		}
	}
	return nil
}
