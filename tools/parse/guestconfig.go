package parse

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// GuestConfig is one guest's configuration file. Kind is lxc or qemu.
type GuestConfig struct {
	VMID           int
	Kind           string
	Node           string // empty when the source does not say
	Current        GuestSettings
	Snapshots      []GuestSnapshot  // in the order of the file
	Pending        *PendingSettings // nil: nothing is pending
	CloudInit      *GuestSettings   // what the cloud-init drive was last written with
	FleecingImages []string         // volumes left by a backup that was interrupted
	OtherSections  []string         // names of sections that are not read
	BadLines       []int            // numbers of lines that could not be read
}

// GuestSnapshot is one snapshot section: the settings as they were. Time is
// unix seconds, nil when it is missing or 0. State is empty for a finished
// snapshot, otherwise what is under way or was interrupted (prepare, delete).
// Settings.Parent is the snapshot before it, Settings.VMState the saved memory.
type GuestSnapshot struct {
	Name     string
	Time     *int64
	State    string
	Settings GuestSettings
}

// PendingSettings are changes that wait for the next start: new values, their
// keys, and the keys that will be deleted.
type PendingSettings struct {
	Settings GuestSettings
	Keys     []string
	Delete   []string
}

// LineError reports lines that could not be read by their numbers, from 1.
type LineError struct {
	Subject string
	Lines   []int
	Want    string
}

// Error names the subject, the first line and what was wanted.
func (e *LineError) Error() string {
	if len(e.Lines) == 1 {
		return fmt.Sprintf("%s: line %d: want %s", e.Subject, e.Lines[0], e.Want)
	}
	return fmt.Sprintf("%s: line %d and %d more: want %s", e.Subject, e.Lines[0], len(e.Lines)-1, e.Want)
}

const (
	nodesPrefix  = "/etc/pve/nodes/"
	guestLine    = "/etc/pve/nodes/NODE/lxc|qemu-server/VMID.conf:LINE"
	longestGuest = 1 << 20
)

// GuestConfigs reads the configuration of every guest of the cluster, by VMID,
// as a stream. An empty input is a cluster without guests. A line that cannot
// be read costs no other: its number is in BadLines of its guest. When lines
// belong to no file at all, the guests are returned together with a
// [*LineError]; a failed reader returns none.
//
// Program: grep -raso of GNU grep 3.7 to 3.11 on the files of PVE 7.4 to 9.2.
// Input:
//
//	/etc/pve/nodes/pve1/lxc/101.conf:rootfs: local:101/vm-101-disk-0.raw,size=8G
func GuestConfigs(r io.Reader) ([]GuestConfig, error) {
	var (
		guests  = []GuestConfig{}
		current configReader
		prefix  string
		strays  = LineError{Subject: "guest configs", Want: guestLine}
	)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), longestGuest)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if prefix == "" || !strings.HasPrefix(line, prefix) {
			guests = current.finish(guests)
			var found bool
			if prefix, current, found = openConfig(line); !found {
				if strings.TrimSpace(line) != "" {
					strays.Lines = append(strays.Lines, number)
				}
				continue
			}
		}
		current.line(number, line[len(prefix):])
	}
	if err := lines.Err(); err != nil {
		return nil, readError("guest configs", err)
	}
	guests = current.finish(guests)
	slices.SortStableFunc(guests, func(a, b GuestConfig) int {
		return cmp.Or(cmp.Compare(a.VMID, b.VMID), strings.Compare(a.Node, b.Node))
	})
	if strays.Lines != nil {
		return guests, &strays
	}
	return guests, nil
}

// readError hides a reader's own text unless it is ours.
func readError(subject string, err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s: want lines of at most %d bytes", subject, longestGuest)
	}
	return fmt.Errorf("%s: %w", subject, err)
}

// openConfig starts the guest whose file the line is from. prefix is the part
// of the line before the file's own text; a file that is no guest's (a copy
// such as 101-old.conf) is opened but gives none.
func openConfig(line string) (prefix string, r configReader, found bool) {
	rest, ok := strings.CutPrefix(line, nodesPrefix)
	end := strings.Index(rest, ".conf:")
	if !ok || end < 0 {
		return "", r, false
	}
	prefix = line[:len(nodesPrefix)+end+len(".conf:")]
	node, file, _ := strings.Cut(rest[:end], "/")
	dir, id, _ := strings.Cut(file, "/")
	kind := map[string]string{"lxc": "lxc", "qemu-server": "qemu"}[dir]
	vmid, err := strconv.Atoi(id)
	if kind == "" || err != nil || vmid <= 0 || id[0] == '+' {
		return prefix, r, true
	}
	return prefix, newConfigReader(kind, node, vmid), true
}

// GuestConfigFile reads one guest's file as grep -o sends it, without a path
// before each line. An empty output is a guest with no setting that is sent.
//
// Program: grep -aso on /etc/pve/nodes/NODE/lxc/VMID.conf. Input:
//
//	rootfs: local:101/vm-101-disk-0.raw,size=8G
func GuestConfigFile(kind, node string, vmid int, out []byte) (GuestConfig, error) {
	if kind != "lxc" && kind != "qemu" {
		return GuestConfig{}, errors.New("guest config: want the kind lxc or qemu")
	}
	r := newConfigReader(kind, node, vmid)
	number := 0
	for line := range strings.Lines(string(out)) {
		number++
		r.line(number, strings.TrimRight(line, "\r\n"))
	}
	g := r.finish(nil)[0]
	if number > 0 && len(g.BadLines) == number {
		return GuestConfig{}, &LineError{Subject: "guest config", Lines: g.BadLines, Want: "KEY: VALUE"}
	}
	return g, nil
}

// GuestConfigText reads the text of pct config and qm config, or a whole
// configuration file: the same grammar, but values that the file forms leave on
// the node are there. Of those only the description is kept; the others are
// named in SetKeys. VMID and Node are not told.
//
// Program: pct config, qm config of PVE 7.4 to 9.2. Input:
//
//	description: # Media%0A[wiki](http%3A//wiki.lab)%0A
func GuestConfigText(kind string, out []byte) (GuestConfig, error) {
	return GuestConfigFile(kind, "", 0, out)
}

// configReader collects the lines of one file. section is nil while the lines
// of a section are not read.
type configReader struct {
	g       *GuestConfig
	section *GuestSettings
	pending bool
	snap    int // index+1 into Snapshots
	// comments are the # lines of the section: the description in a whole file.
	comments []string
}

func newConfigReader(kind, node string, vmid int) configReader {
	g := &GuestConfig{VMID: vmid, Kind: kind, Node: node}
	return configReader{g: g, section: &g.Current}
}

func (r *configReader) finish(guests []GuestConfig) []GuestConfig {
	if r.g == nil {
		return guests
	}
	r.describe()
	g := r.g
	g.Current.finish()
	for i := range g.Snapshots {
		g.Snapshots[i].Settings.finish()
	}
	if g.Pending != nil {
		g.Pending.Settings.finish()
	}
	if g.CloudInit != nil {
		g.CloudInit.finish()
	}
	r.g = nil
	return append(guests, *g)
}

// line reads one line of the file; its number is kept if it is broken.
func (r *configReader) line(number int, line string) {
	if r.g == nil || strings.TrimSpace(line) == "" {
		return
	}
	switch line[0] {
	case '[':
		if !r.header(strings.TrimSpace(line)) {
			r.g.BadLines = append(r.g.BadLines, number)
		}
	case '#':
		r.comments = append(r.comments, line[1:])
	default:
		if !r.setting(line) {
			r.g.BadLines = append(r.g.BadLines, number)
		}
	}
}

// header opens a section. The names of the special ones are those of
// pve-container and qemu-server; a snapshot of a container may be called
// pending.
func (r *configReader) header(line string) bool {
	r.describe()
	r.section, r.pending, r.snap = nil, false, 0
	name, ok := strings.CutSuffix(line[1:], "]")
	lower := strings.ToLower(name)
	switch {
	case !ok:
		return false
	case lower == "pve:pending" && r.g.Kind == "lxc", lower == "pending" && r.g.Kind == "qemu":
		if r.g.Pending == nil {
			r.g.Pending = &PendingSettings{}
		}
		r.section, r.pending = &r.g.Pending.Settings, true
	case lower == "special:cloudinit":
		r.g.CloudInit = &GuestSettings{}
		r.section = r.g.CloudInit
	case lower == "special:fleecing": // its one key is read wherever it stands
	case isConfigID(name):
		r.g.Snapshots = append(r.g.Snapshots, GuestSnapshot{Name: name})
		r.snap = len(r.g.Snapshots)
		r.section = &r.g.Snapshots[r.snap-1].Settings
	default:
		r.g.OtherSections = append(r.g.OtherSections, name)
	}
	return true
}

func (r *configReader) describe() {
	if r.comments != nil && r.section != nil && r.section.Description == nil {
		r.section.Description = new(decodeDescription(strings.Join(r.comments, "\n")))
	}
	r.comments = nil
}

// isConfigID is Proxmox's rule for the names of snapshots.
func isConfigID(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !(c == '_' || c == '-' || '0' <= c && c <= '9')) {
			return false
		}
	}
	return s != ""
}

func (r *configReader) setting(line string) bool {
	key, value, ok := splitSetting(line)
	switch {
	case !ok:
		return false
	case key == "fleecing-images":
		r.g.FleecingImages = append(r.g.FleecingImages, splitList(value)...)
		return true
	case r.section == nil:
		return true
	case r.pending && key == "delete":
		for _, name := range splitList(value) {
			r.g.Pending.Delete = append(r.g.Pending.Delete, strings.TrimPrefix(name, "!"))
		}
		return true
	case r.pending:
		r.g.Pending.Keys = append(r.g.Pending.Keys, key)
	case r.snap > 0 && key == "snaptime":
		return r.snapTime(value)
	case r.snap > 0 && key == "snapstate":
		return setText(&r.g.Snapshots[r.snap-1].State, value)
	}
	return r.section.set(r.g.Kind, key, value)
}

func (r *configReader) snapTime(value string) bool {
	n := parseInt(value)
	if n != nil && *n > 0 {
		r.g.Snapshots[r.snap-1].Time = n
	}
	return n != nil
}

// splitSetting cuts at the first colon after the key; the raw keys of LXC may
// have = there.
func splitSetting(line string) (key, value string, ok bool) {
	end := 0
	for end < len(line) && isKeyByte(line[end]) {
		end++
	}
	key, rest := line[:end], strings.TrimLeft(line[end:], " \t")
	if key == "" || rest == "" || (rest[0] != ':' && (rest[0] != '=' || !strings.HasPrefix(key, "lxc."))) {
		return "", "", false
	}
	return key, strings.TrimSpace(rest[1:]), true
}

func isKeyByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}
