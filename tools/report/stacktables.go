package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Tables shows the stack to people.
func (r *Stack) Tables() []Table {
	facts := Table{Title: fmt.Sprintf("Stack %s on %s: %s", r.Project, r.Where.text(), cmp.Or(r.State, r.Status)), Columns: []string{"fact", "value"}}
	for _, f := range [][2]string{
		{"answer", strings.Trim(r.Status+": "+r.Reason, ": ")}, {"note", r.Note}, {"runtime", r.Runtime}, {"node", r.Node},
		{"directory", strings.Join(r.WorkingDirs, ", ")}, {"files", strings.Join(r.ConfigFiles, ", ")}, {"compose", r.ComposeVersion},
	} {
		if f[1] != "" {
			facts.Rows = append(facts.Rows, []string{f[0], f[1]})
		}
	}
	if b := r.Backup; b != nil {
		facts.Rows = append(facts.Rows, []string{"guest's backup", b.text()})
	}
	out := []Table{facts}
	if r.Status == PlaceOK {
		out = append(out, r.serviceTable(), r.mountTable(), r.networkTable())
	}
	return append(out, findingTable(r.Findings, r.MoreFindings)...)
}

func (b *StackBackup) text() string {
	var s []string
	switch {
	case b.Problem != "":
		s = append(s, b.Problem)
	case len(b.Jobs) == 0:
		s = append(s, "no enabled job takes the guest")
	default:
		s = append(s, "job "+strings.Join(b.Jobs, ", "))
	}
	if b.ArchiveAt != "" {
		s = append(s, "newest archive "+b.ArchiveAt)
	}
	if len(b.NotRead) > 0 {
		s = append(s, "not read: "+strings.Join(b.NotRead, ", "))
	}
	return strings.Join(s, "; ")
}

func (r *Stack) serviceTable() Table {
	t := Table{Title: "Services", Columns: []string{"service", "state", "health", ">running", ">of", "container", "is", "image", ">restarts", "policy", "ports", "notes"}}
	for _, s := range r.Services {
		row := []string{s.Service, s.State, s.Health, fmt.Sprint(s.Running), fmt.Sprint(s.ExpectedMin)}
		if len(s.Containers) == 0 {
			t.Rows = append(t.Rows, row)
		}
		for _, c := range s.Containers {
			t.Rows = append(t.Rows, append(slices.Clone(row), c.Name, c.stateText(), shortImage(c.Image), countText(c.Restarts), c.RestartPolicy, c.portsText(), strings.Join(c.notes(), ", ")))
			row = []string{" ", " ", " ", " ", " "}
		}
	}
	for _, c := range r.OneOff {
		t.Notes = append(t.Notes, fmt.Sprintf("one-off: %s %s (%s)", c.Service, c.Name, c.stateText()))
	}
	return t
}

func (r *Stack) mountTable() Table {
	t := Table{Title: "Mounts", Columns: []string{"mount", "used by", "lies on", "in a backup", "why"}}
	for _, m := range r.Mounts {
		var users []string
		for _, u := range m.UsedBy {
			users = append(users, u.Container+":"+u.Destination)
		}
		why := m.Reason
		if m.Assumes != "" {
			why += "; if " + m.Assumes
		}
		t.Rows = append(t.Rows, []string{m.short(), strings.Join(users, " "), strings.TrimSpace(m.GuestVolume + " " + m.GuestSource), m.InBackup, why})
	}
	return t
}

func (m StackMount) short() string {
	switch {
	case m.Anonymous:
		return "anonymous volume"
	case m.Volume != "":
		return "volume " + m.Volume
	case m.Type == "tmpfs":
		return "tmpfs"
	}
	return m.Source
}

func (r *Stack) networkTable() Table {
	t := Table{Title: "Networks", Columns: []string{"network", "gateway", "container", "ipv4", "ipv6", "mac"}}
	for _, n := range r.Networks {
		for _, m := range n.Members {
			t.Rows = append(t.Rows, []string{n.Name, n.Gateway, m.Container, m.IPv4, m.IPv6, m.MAC})
		}
	}
	return t
}
