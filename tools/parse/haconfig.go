package parse

import "strings"

// HAResource is one guest under HA. SID is ct:101 or vm:200. State is what is
// requested, empty when not written (started).
type HAResource struct {
	SID         string
	VMID        int // 0 when the name is no number
	State       string
	Group       string
	MaxRelocate *int64
	MaxRestart  *int64
	Failback    *bool
	OtherKeys   []string
}

// HANode is a node with the priority that a group or rule gives it.
type HANode struct {
	Name     string
	Priority *int64
}

// HAGroup is a set of nodes for HA resources.
type HAGroup struct {
	ID         string
	Nodes      []HANode
	Restricted bool
	NoFailback bool
	OtherKeys  []string
}

// HARule ties resources to nodes (node-affinity) or to each other
// (resource-affinity, Affinity positive or negative).
type HARule struct {
	ID, Type  string
	Resources []string // SIDs
	Nodes     []HANode
	Affinity  string
	Strict    bool
	Disabled  bool
	OtherKeys []string
}

func haResource(s configSection, bad *[]int) HAResource {
	r := HAResource{SID: s.kind + ":" + s.id}
	if n := parseInt(s.id); n != nil {
		r.VMID = int(*n)
	}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "state":
			return setText(&r.State, value)
		case "group":
			return setText(&r.Group, value)
		case "max_relocate":
			return setInt(&r.MaxRelocate, value)
		case "max_restart":
			return setInt(&r.MaxRestart, value)
		case "failback":
			return setBool(&r.Failback, value)
		}
		r.OtherKeys = appendOnce(r.OtherKeys, key)
		return true
	})
	return r
}

func haGroup(s configSection, bad *[]int) HAGroup {
	g := HAGroup{ID: s.id}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "nodes":
			g.Nodes = haNodes(value)
			return true
		case "restricted":
			return setSwitch(&g.Restricted, value)
		case "nofailback":
			return setSwitch(&g.NoFailback, value)
		}
		g.OtherKeys = appendOnce(g.OtherKeys, key)
		return true
	})
	return g
}

func haRule(s configSection, bad *[]int) HARule {
	r := HARule{ID: s.id, Type: s.kind}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "resources":
			r.Resources = splitList(value)
			return true
		case "nodes":
			r.Nodes = haNodes(value)
			return true
		case "affinity":
			return setText(&r.Affinity, value)
		case "strict":
			return setSwitch(&r.Strict, value)
		case "disable":
			return setSwitch(&r.Disabled, value)
		}
		r.OtherKeys = appendOnce(r.OtherKeys, key)
		return true
	})
	return r
}

// haNodes reads pve1:2,pve3.
func haNodes(value string) []HANode {
	nodes := []HANode{}
	for _, s := range splitList(value) {
		name, priority, _ := strings.Cut(s, ":")
		nodes = append(nodes, HANode{Name: name, Priority: parseInt(priority)})
	}
	return nodes
}
