package parse

import (
	"bytes"
	"slices"
	"time"
)

// A HistoryPoint is one slice of a guest's past, averaged over the slice (half an
// hour in a day's view). What was not measured is nil.
type HistoryPoint struct {
	Time        time.Time // UTC
	CPU         *float64  // share of CPUs, 0..1
	CPUs        *float64
	Memory      *float64 // bytes
	MemoryTotal *float64
	MemoryHost  *float64 // VMs, PVE 9
	Disk        *float64 // containers
	DiskTotal   *float64
	NetIn       *float64 // bytes a second
	NetOut      *float64
	DiskRead    *float64
	DiskWrite   *float64
	Pressure    *Pressure // PVE 9
}

// Measured reports whether the node wrote anything in this slice.
func (p HistoryPoint) Measured() bool { return p.CPU != nil || p.Memory != nil }

// History reads /nodes/N/{lxc,qemu}/ID/rrddata of pvesh (PVE 7 to 9), any time
// frame:
//
//	[{"time":1795969140},{"cpu":0,"maxcpu":2,"maxmem":536870912,"mem":425984,"netin":128.731707317073,"time":1795969200}]
//
// Slices without data keep their time. Points are sorted by time; one without is
// left out and noted. null, "NaN" and a bare nan are not measured.
func History(out []byte) ([]HistoryPoint, []Note, error) {
	list, notes, err := jsonList("guest history", bareNaNs(out))
	if err != nil {
		return nil, nil, err
	}
	points := []HistoryPoint{}
	for _, o := range list {
		at := o.seconds("time")
		if at == nil {
			o.note("time", "seconds since 1970")
			continue
		}
		p := HistoryPoint{
			Time: *at, CPU: o.sample("cpu"), CPUs: o.sample("maxcpu"),
			Memory: o.sample("mem"), MemoryTotal: o.sample("maxmem"), MemoryHost: o.sample("memhost"), Disk: o.sample("disk"), DiskTotal: o.sample("maxdisk"),
			NetIn: o.sample("netin"), NetOut: o.sample("netout"), DiskRead: o.sample("diskread"), DiskWrite: o.sample("diskwrite"),
		}
		if p.Measured() {
			p.Pressure = pressure(o)
		}
		points = append(points, p)
	}
	slices.SortFunc(points, func(a, b HistoryPoint) int { return a.Time.Compare(b.Time) })
	return points, *notes, nil
}

// sample is a number that is no negative and may be the text NaN.
func (o jsonObject) sample(key string) *float64 {
	if bytes.Contains(bytes.ToLower(o.fields[key]), []byte("nan")) {
		return nil
	}
	if f := o.number(key); f != nil && *f >= 0 {
		return f
	}
	return nil
}

// bareNaNs replaces nan and inf outside of text, which Perl may print and JSON
// does not have, by null.
func bareNaNs(out []byte) []byte {
	if !bytes.Contains(bytes.ToLower(out), []byte("nan")) && !bytes.Contains(bytes.ToLower(out), []byte("inf")) {
		return out
	}
	fixed := make([]byte, 0, len(out))
	inText := false
	for i := 0; i < len(out); i++ {
		if out[i] == '"' && (i == 0 || out[i-1] != '\\') {
			inText = !inText
		}
		if n := nanLength(out[i:]); !inText && n > 0 {
			fixed = append(fixed, "null"...)
			i += n - 1
			continue
		}
		fixed = append(fixed, out[i])
	}
	return fixed
}

func nanLength(b []byte) int {
	word := b[:min(len(b), len("-infinity"))]
	for _, w := range []string{"-infinity", "infinity", "-nan", "nan", "-inf", "inf"} {
		if len(word) >= len(w) && bytes.EqualFold(word[:len(w)], []byte(w)) {
			return len(w)
		}
	}
	return 0
}
