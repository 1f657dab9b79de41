package parse

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// RRD is /etc/pve/.rrd: the newest numbers that each node's pvestatd sent, at
// most 300 seconds old. An entry that is missing was not reported lately.
//
// UnknownFamilies lists key families whose field order is not known, or whose
// lines are too short for it; their lines are not read, so with an entry there
// the caller must ask elsewhere.
type RRD struct {
	Nodes           map[string]RRDNode
	Guests          map[int]RRDGuest
	Storages        []RRDStorage // by node, then storage
	UnknownFamilies []string
}

// RRDNode is one node's line. Time is unix seconds, CPU and IOWait are shares
// 0..1 of all CPUs, sizes are bytes, Net counts bytes since boot, pressures are
// percent of the last 10 seconds. MemUsed counts the ZFS cache as used. From
// MemAvailable on the fields exist since PVE 9.
type RRDNode struct {
	Node                             string
	Time                             *int64
	Uptime                           *int64
	Level                            string
	Load1                            *float64
	CPUs                             *int64
	CPU, IOWait                      *float64
	MemTotal, MemUsed                *int64
	SwapTotal, SwapUsed              *int64
	RootTotal, RootUsed              *int64
	NetIn, NetOut                    *int64
	MemAvailable, ARCSize            *int64
	PressureCPUSome                  *float64
	PressureIOSome, PressureIOFull   *float64
	PressureMemSome, PressureMemFull *float64
}

// RRDGuest is one guest's line; its units are those of [RRDNode], CPU is the
// share of its own CPUs. Status is running or stopped, of a VM any state of
// QEMU: paused, prelaunch, io-error and so on. A VM's Disk is always 0,
// because it is not measured. From MemHost on the fields exist since PVE 9.
type RRDGuest struct {
	VMID                             int
	Time                             *int64
	Uptime                           *int64
	Name                             string // VM 205 for a VM without a name
	Status                           string
	Template                         *bool
	CPUs                             *float64
	CPU                              *float64
	MemMax, Mem                      *int64
	DiskMax, Disk                    *int64
	NetIn, NetOut                    *int64
	DiskRead, DiskWrite              *int64
	MemHost                          *int64
	PressureCPUSome, PressureCPUFull *float64
	PressureIOSome, PressureIOFull   *float64
	PressureMemSome, PressureMemFull *float64
}

// RRDStorage is one active storage on one node, sizes in bytes. A storage that
// is not active there has no line.
type RRDStorage struct {
	Node, Storage string
	Time          *int64
	Total, Used   *int64
}

// The families: how many fields a line has at least. Later minor versions only
// append fields (pve-manager, rrd migration of 9.0), so more are accepted.
const (
	oldNodeFields, oldGuestFields, storageFields = 15, 15, 3
	newNodeFields, newGuestFields                = 22, 22
)

// rrdReader collects the newest line of each object.
type rrdReader struct {
	rrd      RRD
	storages map[[2]string]RRDStorage
}

// parseRRD reads .rrd. Lines look like
//
//	pve-vm-9.0/205:0:VM 205:stopped:0:1795970999:1:U:536870912:U:0:0:U:U:U:U:U:U:U:U:U:U:U
//	pve2-storage/pve1/local:1795970990:270553174016:25349242880
//
// While a cluster is upgraded one object can have lines of two families; the
// newest wins.
func parseRRD(raw []byte) (RRD, error) {
	r := rrdReader{
		rrd:      RRD{Nodes: map[string]RRDNode{}, Guests: map[int]RRDGuest{}, Storages: []RRDStorage{}, UnknownFamilies: []string{}},
		storages: map[[2]string]RRDStorage{},
	}
	raw = bytes.TrimRight(raw, "\x00") // pmxcfs ends the file with one on some versions
	if len(raw) > 0 && raw[len(raw)-1] != '\n' {
		return RRD{}, errors.New(rrdPath + ": want a newline at the end, the output is cut")
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\r\n\x00")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if family, ok := r.line(line); !ok {
			r.unknown(family)
		}
	}
	for _, s := range r.storages {
		r.rrd.Storages = append(r.rrd.Storages, s)
	}
	slices.SortFunc(r.rrd.Storages, func(a, b RRDStorage) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Storage, b.Storage))
	})
	slices.Sort(r.rrd.UnknownFamilies)
	return r.rrd, nil
}

// unknown keeps the name of a family, or that a line had none; the first few
// say enough.
func (r *rrdReader) unknown(family string) {
	const most = 20
	if len(family) > 40 || strings.Trim(family, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		family = "unreadable"
	}
	if len(r.rrd.UnknownFamilies) < most {
		r.rrd.UnknownFamilies = appendOnce(r.rrd.UnknownFamilies, family)
	}
}

// line reads one line into the collection; it returns the line's family.
func (r *rrdReader) line(line string) (family string, ok bool) {
	key, rest, _ := strings.Cut(line, ":")
	family, object, _ := strings.Cut(key, "/")
	fields := rrdFields(strings.Split(rest, ":"))
	switch {
	case object == "":
		return family, false
	case family == "pve2-node" && len(fields) >= oldNodeFields:
		r.node(object, fields[:oldNodeFields])
	case isFamily9(family, "pve-node-") && len(fields) >= newNodeFields:
		r.node(object, fields)
	case family == "pve2.3-vm" && len(fields) >= oldGuestFields:
		fields, ok = fields.joinName(oldGuestFields)
		return family, ok && r.guest(object, fields[:oldGuestFields])
	case isFamily9(family, "pve-vm-") && len(fields) >= newGuestFields:
		fields, ok = fields.joinName(newGuestFields)
		return family, ok && r.guest(object, fields)
	case (family == "pve2-storage" || isFamily9(family, "pve-storage-")) && len(fields) >= storageFields:
		return family, r.storage(object, fields)
	default:
		return family, false
	}
	return family, true
}

// isFamily9 reports whether a family is the prefix and 9.0, 9.1 and so on.
func isFamily9(family, prefix string) bool {
	minor, ok := strings.CutPrefix(family, prefix+"9.")
	return ok && minor != "" && strings.Trim(minor, "0123456789") == ""
}

func (r *rrdReader) node(name string, f rrdFields) {
	n := RRDNode{
		Node: name, Uptime: f.int(0), Level: f.text(1), Time: f.int(2), Load1: f.float(3),
		CPUs: f.int(4), CPU: f.float(5), IOWait: f.float(6), MemTotal: f.int(7), MemUsed: f.int(8),
		SwapTotal: f.int(9), SwapUsed: f.int(10), RootTotal: f.int(11), RootUsed: f.int(12),
		NetIn: f.int(13), NetOut: f.int(14), MemAvailable: f.int(15), ARCSize: f.int(16),
		PressureCPUSome: f.float(17), PressureIOSome: f.float(18), PressureIOFull: f.float(19),
		PressureMemSome: f.float(20), PressureMemFull: f.float(21),
	}
	if old, ok := r.rrd.Nodes[name]; !ok || newer(n.Time, old.Time, len(f) > oldNodeFields) {
		r.rrd.Nodes[name] = n
	}
}

func (r *rrdReader) guest(id string, f rrdFields) bool {
	vmid, err := strconv.Atoi(id)
	if err != nil || vmid <= 0 {
		return false
	}
	g := RRDGuest{
		VMID: vmid, Uptime: f.int(0), Name: f.name(), Status: f.text(2), Template: parseBool(f.text(3)),
		Time: f.int(4), CPUs: f.float(5), CPU: f.float(6), MemMax: f.int(7), Mem: f.int(8),
		DiskMax: f.int(9), Disk: f.int(10), NetIn: f.int(11), NetOut: f.int(12),
		DiskRead: f.int(13), DiskWrite: f.int(14), MemHost: f.int(15),
		PressureCPUSome: f.float(16), PressureCPUFull: f.float(17), PressureIOSome: f.float(18),
		PressureIOFull: f.float(19), PressureMemSome: f.float(20), PressureMemFull: f.float(21),
	}
	if old, ok := r.rrd.Guests[vmid]; !ok || newer(g.Time, old.Time, len(f) > oldGuestFields) {
		r.rrd.Guests[vmid] = g
	}
	return true
}

func (r *rrdReader) storage(object string, f rrdFields) bool {
	node, id, ok := strings.Cut(object, "/")
	if !ok || node == "" || id == "" {
		return false
	}
	key := [2]string{node, id}
	s := RRDStorage{Node: node, Storage: id, Time: f.int(0), Total: f.int(1), Used: f.int(2)}
	if old, ok := r.storages[key]; !ok || newer(s.Time, old.Time, true) {
		r.storages[key] = s
	}
	return true
}

// newer compares the times of two lines of one object; richer decides a tie.
func newer(a, b *int64, richer bool) bool {
	switch {
	case a == nil:
		return false
	case b == nil:
		return true
	default:
		return *a > *b || *a == *b && richer
	}
}

// rrdFields are the values of a line; U and empty stand for undefined.
type rrdFields []string

func (f rrdFields) text(i int) string {
	if i >= len(f) || f[i] == "U" {
		return ""
	}
	return f[i]
}

// joinName puts a guest's name together again that has colons in it, as a
// configuration edited by hand may. The status, a word, and the template flag
// come after the name; ok is false when they are nowhere where they could be.
func (f rrdFields) joinName(atLeast int) (joined rrdFields, ok bool) {
	for extra := 0; len(f)-extra >= atLeast; extra++ {
		status, template := f.text(2+extra), f.text(3+extra)
		if strings.Trim(status, "abcdefghijklmnopqrstuvwxyz-") == "" && (template == "" || template == "0" || template == "1") && f.count(4+extra) {
			name := strings.Join(f[1:2+extra], ":")
			return slices.Concat(rrdFields{f[0], name}, f[2+extra:]), true
		}
	}
	return nil, false
}

// name is U for a guest that is called so, and undefined where all else is.
func (f rrdFields) name() string {
	if f.text(2) == "" {
		return f.text(1)
	}
	return f[1]
}

// count reports whether a field is a whole number or undefined.
func (f rrdFields) count(i int) bool { return f.text(i) == "" || f.int(i) != nil }

func (f rrdFields) float(i int) *float64 { return parseFloat(f.text(i)) }

// int reads whole numbers; Perl may write a computed one with a fraction or an
// exponent.
func (f rrdFields) int(i int) *int64 {
	if n := parseInt(f.text(i)); n != nil {
		return n
	}
	v := f.float(i)
	if v == nil || math.Abs(*v) >= 1<<63 {
		return nil
	}
	return new(int64(math.Round(*v)))
}
