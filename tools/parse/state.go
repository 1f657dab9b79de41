package parse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The paths of the form state, in the order of its argv.
const (
	membersPath = "/etc/pve/.members"
	vmlistPath  = "/etc/pve/.vmlist"
	rrdPath     = "/etc/pve/.rrd"
)

// State is what one node's cluster filesystem knows at once: who is there,
// which guest lives where, and the live numbers.
type State struct {
	Members Members
	Guests  []GuestRef // every guest of the cluster, by VMID
	RRD     RRD
}

// Members is /etc/pve/.members. A lone node has neither Cluster nor Nodes.
type Members struct {
	Node    string       // the node that was asked
	Cluster *ClusterInfo // nil: not in a cluster
	Nodes   []Member     // by name, Node among them; empty on a lone node
}

// ClusterInfo is the cluster as the asked node sees it. Quorate nil: not told.
type ClusterInfo struct {
	Name    string
	Version *int64
	Nodes   *int64
	Quorate *bool
}

// Member is one node of a cluster. Online nil: not told, so unknown. IP is
// empty for a node that was never seen online.
type Member struct {
	Name   string
	ID     *int64
	Online *bool
	IP     string
}

// GuestRef says where a guest lives. Type is lxc or qemu.
type GuestRef struct {
	VMID int
	Node string
	Type string
}

// ParseState reads the three files of the form state. It fails, saying what was
// wanted, when one of them is missing, cut or of another shape; a .rrd line of
// an unknown family is no failure (see [RRD]).
//
// Program: tail -v of files of pmxcfs 7.4 to 9.2. Input:
//
//	==> /etc/pve/.vmlist <==
//	{ "version": 3, "ids": { "203": { "node": "pve1", "type": "qemu", "version": 5 } } }
func ParseState(out []byte) (*State, error) {
	files, err := Files(out, []string{membersPath, vmlistPath, rrdPath})
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	for _, path := range []string{membersPath, vmlistPath, rrdPath} {
		if _, ok := files[path]; !ok {
			return nil, fmt.Errorf("state: want %s, got an output without it", path)
		}
	}
	var s State
	if s.Members, err = parseMembers(files[membersPath]); err != nil {
		return nil, err
	}
	if s.Guests, err = parseVMList(files[vmlistPath]); err != nil {
		return nil, err
	}
	if s.RRD, err = parseRRD(files[rrdPath]); err != nil {
		return nil, err
	}
	return &s, nil
}

func parseMembers(raw []byte) (Members, error) {
	var in struct {
		Nodename jsonText
		Cluster  *struct {
			Name           jsonText
			Version, Nodes jsonInt
			Quorate        jsonBool
		}
		Nodelist map[string]struct {
			ID     jsonInt
			Online jsonBool
			IP     jsonText
		}
	}
	if err := readJSON(membersPath, raw, &in); err != nil {
		return Members{}, err
	}
	if !label(in.Nodename.String()) {
		return Members{}, errors.New(membersPath + ": want a nodename that is a host name")
	}
	m := Members{Node: in.Nodename.String(), Nodes: []Member{}}
	if c := in.Cluster; c != nil {
		m.Cluster = &ClusterInfo{Name: c.Name.String(), Version: c.Version.Value, Nodes: c.Nodes.Value, Quorate: c.Quorate.Value}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Nodelist)) {
		if !label(name) {
			return Members{}, errors.New(membersPath + ": want host names in the nodelist")
		}
		n := in.Nodelist[name]
		m.Nodes = append(m.Nodes, Member{Name: name, ID: n.ID.Value, Online: n.Online.Value, IP: n.IP.String()})
	}
	if _, listed := in.Nodelist[m.Node]; m.Cluster != nil && !listed {
		m.Nodes = append(m.Nodes, Member{Name: m.Node})
		slices.SortFunc(m.Nodes, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	}
	return m, nil
}

func parseVMList(raw []byte) ([]GuestRef, error) {
	var in struct {
		Version jsonInt
		IDs     map[string]struct{ Node, Type jsonText }
	}
	if err := readJSON(vmlistPath, raw, &in); err != nil {
		return nil, err
	}
	if in.Version.Value == nil && in.IDs == nil {
		return nil, errors.New(vmlistPath + ": want a version or ids")
	}
	guests := make([]GuestRef, 0, len(in.IDs))
	for id, g := range in.IDs {
		vmid, err := strconv.Atoi(id)
		if err != nil || vmid <= 0 {
			return nil, errors.New(vmlistPath + ": want numbers as ids")
		}
		if node, kind := g.Node.String(), g.Type.String(); node != "" && !label(node) || kind != "" && !label(kind) {
			return nil, errors.New(vmlistPath + ": want host names as nodes and words as types")
		}
		guests = append(guests, GuestRef{VMID: vmid, Node: g.Node.String(), Type: g.Type.String()})
	}
	slices.SortFunc(guests, func(a, b GuestRef) int { return cmp.Compare(a.VMID, b.VMID) })
	return guests, nil
}

// label reports whether s is what Proxmox VE takes as a node's name: letters,
// digits and inner hyphens, at most 63. Names of nodes become words of commands
// and stand in every table, so nothing else is let in.
func label(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		alnum := c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9'
		if !alnum && (s[i] != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// readJSON decodes one JSON value and nothing after it. The decoder's own
// messages quote the remote text, so the error has only the line.
func readJSON(subject string, raw []byte, into any) error {
	raw = bytes.TrimRight(raw, "\x00 \t\r\n")
	if len(bytes.TrimSpace(raw)) == 0 {
		return fmt.Errorf("%s: want JSON, got nothing", subject)
	}
	err := json.Unmarshal(raw, into)
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: line %d: want whole JSON", subject, lineAt(raw, syntax.Offset))
	case errors.As(err, &shape):
		return fmt.Errorf("%s: line %d: want %s", subject, lineAt(raw, shape.Offset), jsonShape(shape.Type.Kind()))
	default:
		return fmt.Errorf("%s: want JSON", subject)
	}
}

func jsonShape(k reflect.Kind) string {
	if k == reflect.Slice {
		return "a JSON list"
	}
	return "a JSON object"
}

func lineAt(raw []byte, offset int64) int {
	return 1 + bytes.Count(raw[:min(max(offset, 0), int64(len(raw)))], []byte("\n"))
}
