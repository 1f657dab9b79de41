package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// LVM is a node's volume groups and thin pools.
type LVM struct {
	Groups  []VolumeGroup   // by name
	Pools   []ThinPool      // by group, then name
	Volumes []LogicalVolume // the others, without the pools' hidden parts; by group, then name
}

// A VolumeGroup is one group, in bytes.
type VolumeGroup struct {
	Name        string
	Size, Free  *int64
	VolumeCount int // volumes and pools that one sees
}

// A ThinPool is one thin pool. It is full when its data or its metadata is.
type ThinPool struct {
	Group, Name   string
	Size          *int64   // bytes of data
	DataUsed      *float64 // share, 0..1
	MetadataSize  *int64
	MetadataUsed  *float64 // share, 0..1; says nothing about space used
	Trouble       PoolTrouble
	VirtualBytes  int64 // sum of the thin volumes' sizes, without snapshots
	SnapshotBytes int64 // sum of the snapshots' sizes
	Thin          int   // thin volumes, snapshots too
}

// A PoolTrouble is the pool's own flag: the ninth letter of lv_attr.
type PoolTrouble string

// The flags.
const (
	PoolFine             PoolTrouble = ""
	PoolOutOfData        PoolTrouble = "out of data space"
	PoolMetadataReadOnly PoolTrouble = "metadata is read-only"
	PoolFailed           PoolTrouble = "failed"
	PoolPartial          PoolTrouble = "a disk is missing"
	PoolUnknown          PoolTrouble = "unknown"
)

// A LogicalVolume is one volume.
type LogicalVolume struct {
	Group, Name string
	Size        *int64   // bytes
	Pool        string   // thin volumes: their pool
	DataUsed    *float64 // thin volumes: share that is written, 0..1
	Snapshot    bool     // a guest's snapshot, by Proxmox's naming
	Active      bool
}

// LVs reads lvs --reportformat json --units b --nosuffix -a -o lv_name,vg_name,
// lv_attr,lv_size,pool_lv,data_percent,metadata_percent,lv_metadata_size,vg_size,
// vg_free (lvm2 2.03). Numbers are text, "" is none; names in brackets are parts.
//
//	{"report":[{"lv":[{"lv_name":"data","vg_name":"pve","lv_attr":"twi-aotz--","lv_size":"343597383680","pool_lv":"","data_percent":"61.20","metadata_percent":"93.75"}]}]}
func LVs(out []byte) (LVM, []Note, error) {
	l := LVM{Groups: []VolumeGroup{}, Pools: []ThinPool{}, Volumes: []LogicalVolume{}}
	o, err := jsonOne("lvs", out)
	if err != nil {
		return l, nil, err
	}
	if !o.has("report") {
		return l, nil, fmt.Errorf("lvs: want %q in its JSON", "report")
	}
	row := 0
	for _, report := range o.objects("report") {
		for _, lv := range report.objects("lv") {
			row++
			lv.line, lv.path = row, ""
			l.add(lv)
		}
	}
	l.settle()
	return l, *o.notes, nil
}

func (l *LVM) add(o jsonObject) {
	group, name, attr := o.text("vg_name"), o.text("lv_name"), o.text("lv_attr")
	if group == "" || name == "" {
		o.note("lv_name", "a volume and its group")
		return
	}
	g := l.group(group, o)
	if strings.HasPrefix(name, "[") {
		return
	}
	g.VolumeCount++
	size := lvmBytes(o, "lv_size")
	if strings.HasPrefix(attr, "t") {
		l.Pools = append(l.Pools, ThinPool{
			Group: group, Name: name, Size: size, DataUsed: percent(o, "data_percent"), MetadataUsed: percent(o, "metadata_percent"),
			MetadataSize: lvmBytes(o, "lv_metadata_size"), Trouble: poolTrouble(attr),
		})
		return
	}
	v := LogicalVolume{Group: group, Name: name, Size: size, Pool: o.text("pool_lv"), Snapshot: strings.HasPrefix(name, "snap_"), Active: len(attr) > 4 && attr[4] == 'a'}
	if v.Pool != "" {
		v.DataUsed = percent(o, "data_percent")
	}
	l.Volumes = append(l.Volumes, v)
}

func (l *LVM) group(name string, o jsonObject) *VolumeGroup {
	i := slices.IndexFunc(l.Groups, func(g VolumeGroup) bool { return g.Name == name })
	if i < 0 {
		l.Groups = append(l.Groups, VolumeGroup{Name: name, Size: lvmBytes(o, "vg_size"), Free: lvmBytes(o, "vg_free")})
		i = len(l.Groups) - 1
	}
	return &l.Groups[i]
}

// lvmBytes reads bytes, with or without the suffix that --nosuffix omits.
func lvmBytes(o jsonObject, key string) *int64 {
	s := strings.TrimSuffix(strings.TrimSpace(o.text(key)), "B")
	if s == "" {
		return nil
	}
	n := nonNegative(parseInt(s))
	if n == nil {
		o.note(key, "bytes")
	}
	return n
}

// percent makes a share of "61.20".
func percent(o jsonObject, key string) *float64 {
	f := o.number(key)
	if f == nil || *f < 0 {
		return nil
	}
	return new(*f / 100)
}

func poolTrouble(attr string) PoolTrouble {
	if len(attr) < 9 {
		return PoolUnknown
	}
	switch attr[8] {
	case '-':
		return PoolFine
	case 'D':
		return PoolOutOfData
	case 'M':
		return PoolMetadataReadOnly
	case 'F':
		return PoolFailed
	case 'p':
		return PoolPartial
	}
	return PoolUnknown
}

func (l *LVM) settle() {
	for _, v := range l.Volumes {
		i := slices.IndexFunc(l.Pools, func(p ThinPool) bool { return p.Group == v.Group && p.Name == v.Pool })
		if i < 0 || v.Size == nil {
			continue
		}
		l.Pools[i].Thin++
		if v.Snapshot {
			l.Pools[i].SnapshotBytes += *v.Size
		} else {
			l.Pools[i].VirtualBytes += *v.Size
		}
	}
	slices.SortFunc(l.Groups, func(a, b VolumeGroup) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(l.Pools, func(a, b ThinPool) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(l.Volumes, func(a, b LogicalVolume) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
}
