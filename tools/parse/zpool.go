package parse

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
)

// A ZPool is one pool as zpool status describes it. ONLINE is not the same as
// healthy: devices count their errors while the pool still repairs them.
type ZPool struct {
	Name       string
	State      string // ONLINE, DEGRADED, FAULTED, OFFLINE, UNAVAIL, REMOVED, SUSPENDED
	Status     string // the program's own sentences, on one line; "" when all is well
	Action     string
	MessageID  string // ZFS-8000-9P
	Scan       ZPoolScan
	Devices    []ZPoolDevice // in the program's order, the pool itself first
	DataErrors *int64        // files or objects that are lost; nil: not told
	NoErrors   bool          // "No known data errors"
}

// A ZPoolScan is the last scrub or resilver, or the one that runs.
type ZPoolScan struct {
	Kind     string // scrub or resilver; "" when there was none
	State    string // finished, running, paused, canceled
	At       *time.Time
	Errors   *int64   // of a finished one
	Progress *float64 // of a running one, 0..1
}

// A ZPoolDevice is one line of a pool's configuration.
type ZPoolDevice struct {
	Name    string
	Class   string // "" for data, else logs, cache, spares, special, dedup
	Level   int    // 0 is the pool, 1 its mirrors and raidz, 2 their disks
	Leaf    bool
	State   string // ONLINE, DEGRADED, FAULTED, AVAIL, INUSE, …; "" of a class's heading
	Read    *int64 // errors
	Write   *int64
	Cksum   *int64
	Remark  string // "too many errors", "resilvering", "was /dev/…"
	Rounded bool   // a number had a unit: printed without -p
}

// Errors is the sum of the device's errors.
func (d ZPoolDevice) Errors() int64 {
	var n int64
	for _, e := range []*int64{d.Read, d.Write, d.Cksum} {
		if e != nil {
			n += *e
		}
	}
	return n
}

// ZPoolStatus reads zpool status -p (OpenZFS 0.8 to 2.4), and without -p, then
// numbers are rounded. Its times are the node's local ones: location says where
// that is, nil means UTC.
//
//	  pool: tank
//	 state: ONLINE
//	  scan: scrub repaired 96K in 09:41:07 with 0 errors on Sun Sep 13 12:38:13 2026
//	config:
//
//		NAME        STATE     READ WRITE CKSUM
//		tank        ONLINE       0     0     0
//
//	errors: No known data errors
//
// "no pools available" is an empty list.
func ZPoolStatus(out []byte, location *time.Location) ([]ZPool, []Note, error) {
	r := zpoolReader{location: location, pools: []ZPool{}, notes: []Note{}}
	if r.location == nil {
		r.location = time.UTC
	}
	for line := range bytes.Lines(out) {
		r.number++
		r.line(strings.TrimRight(string(line), "\r\n"))
	}
	r.end()
	if len(r.pools) == 0 && !bytes.Contains(out, []byte("no pools available")) {
		return nil, nil, errors.New(`zpool status: want "pool:" lines, got none`)
	}
	for _, p := range r.pools {
		if p.State == "" || len(p.Devices) == 0 {
			return nil, nil, fmt.Errorf("zpool status: want a state and a configuration of each of %d pools", len(r.pools))
		}
	}
	return r.pools, r.notes, nil
}

type zpoolReader struct {
	pools    []ZPool
	notes    []Note
	location *time.Location
	number   int
	key      string   // the field that continues on the lines below
	text     []string // what it says so far
	class    string
}

var zpoolField = regexp.MustCompile(`^ {0,4}(pool|state|status|action|see|scan|config|errors|comment|expand|remove|checkpoint|scrub):(?: (.*))?$`)

func (r *zpoolReader) line(line string) {
	m := zpoolField.FindStringSubmatch(line)
	switch {
	case m != nil && !strings.HasPrefix(line, "\t"):
		r.end()
		r.key, r.text, r.class = m[1], []string{m[2]}, ""
		if m[1] == "pool" {
			r.pools = append(r.pools, ZPool{Name: strings.TrimSpace(m[2]), Devices: []ZPoolDevice{}})
		}
	case len(r.pools) == 0 || strings.TrimSpace(line) == "":
	case r.key == "config":
		r.device(line)
	default:
		r.text = append(r.text, strings.TrimSpace(line))
	}
}

// end takes the field that is complete now.
func (r *zpoolReader) end() {
	if len(r.pools) == 0 || r.key == "" {
		return
	}
	p := &r.pools[len(r.pools)-1]
	text := strings.TrimSpace(strings.Join(r.text, " "))
	switch r.key {
	case "state":
		p.State = text
	case "status":
		p.Status = text
	case "action":
		p.Action = text
	case "see":
		p.MessageID = text[strings.LastIndexByte(text, '/')+1:]
	case "scan", "scrub":
		p.Scan = r.scan(text)
	case "errors":
		p.NoErrors, p.DataErrors = dataErrors(r.text)
	}
	r.key = ""
}

// dataErrors counts what the pool lost. Without -v there is a number, with it a
// list of files.
func dataErrors(text []string) (none bool, count *int64) {
	first := strings.ToLower(text[0])
	if strings.HasPrefix(first, "no known data errors") {
		return true, new(int64(0))
	}
	if number, _, ok := strings.Cut(first, " data errors"); ok {
		n, _ := zfsCount(number)
		return false, n
	}
	if strings.HasPrefix(first, "permanent errors") {
		return false, new(int64(max(1, len(text)-1)))
	}
	return false, nil
}

var (
	scanTime     = regexp.MustCompile(`(?:on|since) ([A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})`)
	scanErrors   = regexp.MustCompile(`with (\d+) errors`)
	scanProgress = regexp.MustCompile(`(\d+(?:\.\d+)?)% done`)
)

func (r *zpoolReader) scan(text string) ZPoolScan {
	s := ZPoolScan{Kind: "scrub"}
	if strings.HasPrefix(text, "resilver") {
		s.Kind = "resilver"
	}
	switch {
	case text == "" || strings.HasPrefix(text, "none requested"):
		return ZPoolScan{}
	case strings.Contains(text, "in progress"):
		s.State = "running"
	case strings.Contains(text, "paused"):
		s.State = "paused"
	case strings.Contains(text, "canceled"):
		s.State = "canceled"
	case strings.Contains(text, "repaired"), strings.Contains(text, "resilvered"):
		s.State = "finished"
	}
	if m := scanTime.FindStringSubmatch(text); m != nil {
		if t, err := time.ParseInLocation("Mon Jan _2 15:04:05 2006", strings.Join(strings.Fields(m[1]), " "), r.location); err == nil {
			s.At = new(t.UTC())
		}
	}
	if m := scanErrors.FindStringSubmatch(text); m != nil && s.State == "finished" {
		s.Errors = parseInt(m[1])
	}
	if m := scanProgress.FindStringSubmatch(text); m != nil && s.State != "finished" {
		if f := parseFloat(m[1]); f != nil {
			s.Progress = new(*f / 100)
		}
	}
	return s
}

// device reads one line of the configuration: a tab, two blanks a level, the
// name, the state and three counters. A class of devices has only its name.
func (r *zpoolReader) device(line string) {
	line = strings.TrimPrefix(line, "\t")
	level := (len(line) - len(strings.TrimLeft(line, " "))) / 2
	f := strings.Fields(line)
	if f[0] == "NAME" && len(f) > 1 && f[1] == "STATE" {
		return
	}
	p := &r.pools[len(r.pools)-1]
	if level == 0 && f[0] != p.Name {
		r.class = f[0]
	}
	d := ZPoolDevice{Name: f[0], Class: r.class, Level: level, Leaf: true}
	if len(f) > 1 {
		d.State = f[1]
	}
	rest := f[min(2, len(f)):]
	if len(rest) >= 3 {
		if rounded, ok := d.counters(rest[:3]); ok {
			d.Rounded, rest = rounded, rest[3:]
		}
	}
	d.Remark = strings.Trim(strings.Join(rest, " "), "()")
	if i := len(p.Devices) - 1; i >= 0 && p.Devices[i].Level < level {
		p.Devices[i].Leaf = false
	}
	if d.State == "" {
		d.Leaf = false
		if level > 0 {
			r.notes = append(r.notes, Note{r.number, "want a device's state"})
		}
	}
	p.Devices = append(p.Devices, d)
}

// counters sets the three error counters; "-" is not counted.
func (d *ZPoolDevice) counters(f []string) (rounded, ok bool) {
	var n [3]*int64
	for i, s := range f {
		var unit bool
		if n[i], unit = zfsCount(s); n[i] == nil && s != "-" {
			return false, false
		}
		rounded = rounded || unit
	}
	d.Read, d.Write, d.Cksum = n[0], n[1], n[2]
	return rounded, true
}

// zfsCount reads 0, 1050 and the rounded 1.03K, whose units are powers of 1024.
func zfsCount(s string) (n *int64, rounded bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 20 {
		return nil, false
	}
	if unit := strings.IndexByte("KMGTPE", s[len(s)-1]&^0x20); unit >= 0 {
		f := parseFloat(s[:len(s)-1])
		if f == nil || *f < 0 {
			return nil, false
		}
		v := math.Round(*f * math.Pow(1024, float64(unit+1)))
		if v >= 1<<60 { // three of them must still add up
			return nil, false
		}
		return new(int64(v)), true
	}
	if n = nonNegative(parseInt(s)); n != nil && *n >= 1<<60 {
		return nil, false
	}
	return n, false
}
