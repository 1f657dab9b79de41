package parse

import (
	"errors"
	"strings"
)

// Corosync is the cluster's vote configuration. A flag that is not written is
// nil; corosync's default is off, but two_node switches wait_for_all on.
type Corosync struct {
	ClusterName     string
	ConfigVersion   *int64
	Provider        string
	ExpectedVotes   *int64
	TwoNode         *bool
	WaitForAll      *bool
	LastManStanding *bool
	AutoTieBreaker  *bool
	Nodes           []CorosyncNode // in the order of the file
	QDevice         *CorosyncQDevice
}

// CorosyncNode is one node. Votes nil: not written, one vote.
type CorosyncNode struct {
	Name      string
	ID        *int64
	Votes     *int64
	Addresses []string // by link
}

// CorosyncQDevice is the voter that is no node. Votes nil: not written.
type CorosyncQDevice struct {
	Model, Host, Algorithm string
	Votes                  *int64
}

// ParseCorosync reads the form corosync. nil without an error means that there
// is no such file: a node that is in no cluster. A line that cannot be read
// becomes a note.
//
// The filter takes the headers of some blocks away but leaves their closing
// braces, so braces that close nothing are skipped, and the keys of the device
// are taken anywhere inside quorum.
//
// Program: grep -sE on /etc/pve/corosync.conf, corosync 3.1. Input:
//
//	nodelist {
//	  node {
//	    ring0_addr: 192.168.20.11
func ParseCorosync(out []byte) (*Corosync, []Note, error) {
	var r corosyncReader
	_, notes, err := eachLine("corosync", "BLOCK {, } or KEY: VALUE", out, func(line string) (struct{}, bool) {
		return struct{}{}, r.line(strings.TrimSpace(line))
	})
	if err != nil {
		return nil, nil, err
	}
	if strings.TrimSpace(string(out)) == "" {
		return nil, nil, nil
	}
	if len(r.c.Nodes) == 0 && r.c.ClusterName == "" {
		return nil, nil, errors.New("corosync: want a nodelist or a cluster_name")
	}
	return &r.c, notes, nil
}

type corosyncReader struct {
	c      Corosync
	blocks []string
}

func (r *corosyncReader) line(line string) bool {
	switch {
	case strings.HasPrefix(line, "}"):
		if len(r.blocks) > 0 {
			r.blocks = r.blocks[:len(r.blocks)-1]
		}
		return true
	case strings.HasSuffix(line, "{"):
		r.open(strings.TrimSpace(strings.TrimSuffix(line, "{")))
		return true
	}
	key, value, ok := strings.Cut(line, ":")
	return ok && r.set(strings.TrimSpace(key), strings.TrimSpace(value))
}

func (r *corosyncReader) open(block string) {
	switch block {
	case "totem", "nodelist", "quorum":
		r.blocks = nil // these stand at the top
	case "node":
		r.c.Nodes = append(r.c.Nodes, CorosyncNode{})
	case "device":
		r.c.QDevice = &CorosyncQDevice{}
	}
	r.blocks = append(r.blocks, block)
}

func (r *corosyncReader) set(key, value string) bool {
	c := &r.c
	switch key {
	case "cluster_name":
		return setText(&c.ClusterName, value)
	case "config_version":
		return setInt(&c.ConfigVersion, value)
	case "provider":
		return setText(&c.Provider, value)
	case "expected_votes":
		return setInt(&c.ExpectedVotes, value)
	case "two_node":
		return setBool(&c.TwoNode, value)
	case "wait_for_all":
		return setBool(&c.WaitForAll, value)
	case "last_man_standing":
		return setBool(&c.LastManStanding, value)
	case "auto_tie_breaker":
		return setBool(&c.AutoTieBreaker, value)
	case "model", "host", "algorithm", "votes":
		return c.QDevice == nil || c.QDevice.set(key, value)
	}
	if len(c.Nodes) > 0 && len(r.blocks) > 0 && r.blocks[len(r.blocks)-1] == "node" {
		return c.Nodes[len(c.Nodes)-1].set(key, value)
	}
	return true
}

func (d *CorosyncQDevice) set(key, value string) bool {
	switch key {
	case "model":
		return setText(&d.Model, value)
	case "host":
		return setText(&d.Host, value)
	case "algorithm":
		return setText(&d.Algorithm, value)
	}
	return setInt(&d.Votes, value)
}

func (n *CorosyncNode) set(key, value string) bool {
	switch {
	case key == "name":
		return setText(&n.Name, value)
	case key == "nodeid":
		return setInt(&n.ID, value)
	case key == "quorum_votes":
		return setInt(&n.Votes, value)
	case strings.HasPrefix(key, "ring") && strings.HasSuffix(key, "_addr"):
		n.Addresses = append(n.Addresses, value)
		return value != ""
	}
	return true
}
