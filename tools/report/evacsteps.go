package report

import (
	"fmt"
	"slices"
	"strings"
)

// steps puts a plan into the order in which a person does it: first what HA and
// running tasks need time for, then what moves without a break, then what goes
// down for it, last what stays.
func (v *EvacView) steps(guests []EvacGuest) []EvacStep {
	out := []EvacStep{}
	add := func(s EvacStep) {
		s.Step = len(out) + 1
		out = append(out, s)
	}
	if v.Lone || len(guests) == 0 || !Quorate(v.Cluster.State) {
		return out
	}
	if v.offline() {
		v.takeOver(guests, add)
		return out
	}
	ha := slices.ContainsFunc(guests, func(g EvacGuest) bool { return g.Action == EvacHA })
	if ha {
		add(EvacStep{On: v.Node, Command: "ha-manager crm-command node-maintenance enable " + v.Node, Note: "HA moves its running guests away and brings none back: " + ids(guests, EvacHA)})
	}
	for _, g := range guests {
		if g.Action == EvacWait {
			add(EvacStep{VMID: g.VMID, On: v.Node, Note: "wait: " + g.Reason})
		}
	}
	for _, action := range []string{EvacLive, EvacRestart, EvacOffline, EvacHA} {
		for _, g := range guests {
			if g.Action == action {
				v.moves(g, add)
			}
		}
	}
	for _, g := range guests {
		if g.Action == EvacBlocked && g.runs {
			add(EvacStep{VMID: g.VMID, On: v.Node, Command: program(g) + fmt.Sprintf(" shutdown %d", g.VMID), Note: "it cannot be moved and stays down with the node"})
		}
	}
	add(EvacStep{On: v.Node, Command: "qm list; pct list", Note: "nothing may run any more before the node goes down"})
	if ha {
		add(EvacStep{On: v.Node, Command: "ha-manager crm-command node-maintenance disable " + v.Node, Note: "when the node is back"})
	}
	return out
}

func program(g EvacGuest) string {
	if g.Type == "lxc" {
		return "pct"
	}
	return "qm"
}

func ids(guests []EvacGuest, action string) string {
	var out []int
	for _, g := range guests {
		if g.Action == action {
			out = append(out, g.VMID)
		}
	}
	return someIDs(out)
}

// moves adds the commands that move one guest.
func (v *EvacView) moves(g EvacGuest, add func(EvacStep)) {
	migrate := fmt.Sprintf("%s migrate %d %s", program(g), g.VMID, g.Target)
	switch {
	case g.Action == EvacLive && g.with:
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: migrate + " --online --with-local-disks", Note: "copies its disks " + Bytes(g.CopyBytes)})
	case g.Action == EvacLive:
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: migrate + " --online"})
	case g.Action == EvacRestart:
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: migrate + " --restart", Note: "down for its restart"})
	case g.Action == EvacHA && !g.runs && strings.Contains(g.Reason, "stopped"):
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: fmt.Sprintf("ha-manager migrate %s:%d NODE", map[bool]string{true: "ct", false: "vm"}[g.Type == "lxc"], g.VMID), Note: "only if it must leave the node: " + g.Reason})
	case g.Action == EvacOffline && g.runs:
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: fmt.Sprintf("%s shutdown %d", program(g), g.VMID), Note: "down from here: " + g.Reason})
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: migrate})
		add(EvacStep{VMID: g.VMID, On: g.Target, Command: fmt.Sprintf("%s start %d", program(g), g.VMID)})
	case g.Action == EvacOffline:
		add(EvacStep{VMID: g.VMID, On: v.Node, Command: migrate})
	}
}

// takeOver adds the steps for a node that is off.
func (v *EvacView) takeOver(guests []EvacGuest, add func(EvacStep)) {
	if !slices.ContainsFunc(guests, func(g EvacGuest) bool { return g.Action == EvacOffline }) {
		return
	}
	add(EvacStep{Note: "make sure that " + v.Node + " has no power and stays off: a guest that runs on two nodes destroys its disks"})
	for _, g := range guests {
		if g.Action != EvacOffline {
			continue
		}
		folder := map[bool]string{true: "lxc", false: "qemu-server"}[g.Type == "lxc"]
		add(EvacStep{VMID: g.VMID, On: g.Target, Command: fmt.Sprintf("mv /etc/pve/nodes/%s/%s/%d.conf /etc/pve/nodes/%s/%s/", v.Node, folder, g.VMID, g.Target, folder), Note: "takes its configuration over"})
		if g.runs {
			add(EvacStep{VMID: g.VMID, On: g.Target, Command: fmt.Sprintf("%s start %d", program(g), g.VMID)})
		}
	}
}
