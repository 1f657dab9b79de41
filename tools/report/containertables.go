package report

import (
	"fmt"
	"slices"
	"strings"
)

// Tables shows the places and the containers to people.
func (l *ContainerList) Tables() []Table {
	out := []Table{placeTable(l.Places, l.MorePlaces)}
	if slices.ContainsFunc(l.Places, func(p ContainerPlace) bool { return p.Status == PlaceOK }) {
		out = append(out, containerTable(l.Items, l.Page.note("containers")))
	}
	return append(out, findingTable(l.Findings, l.MoreFindings)...)
}

func placeTable(places []ContainerPlace, more int) Table {
	t := Table{Title: "Looked at", Columns: []string{"where", "type", "node", "runtime", "answer", ">containers", ">running", "why"}}
	for _, p := range places {
		t.Rows = append(t.Rows, []string{p.text(), p.Type, p.Node, p.Runtime, p.Status, countText(p.Containers), countText(p.Running), strings.Trim(p.Reason+"; "+p.Note, "; ")})
	}
	if more > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("and %d more", more))
	}
	return t
}

func containerTable(rows []Container, note string) Table {
	t := Table{Title: "Containers", Columns: []string{"where", "name", "state", "health", "image", "project", "service", "ports"}, Notes: []string{note}}
	detailed := slices.ContainsFunc(rows, func(c Container) bool { return c.RestartPolicy != "" })
	if detailed {
		t.Columns = append(t.Columns, ">restarts", "policy", "notes")
	}
	for _, c := range rows {
		row := []string{c.text(), c.Name, c.stateText(), c.Health, shortImage(c.Image), c.Project, c.serviceText(), c.portsText()}
		if detailed {
			row = append(row, countText(c.Restarts), c.RestartPolicy, strings.Join(c.notes(), ", "))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func countText(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func (c Container) stateText() string {
	if c.ExitCode != nil {
		return fmt.Sprintf("%s (%d)", c.State, *c.ExitCode)
	}
	return c.State
}

func (c Container) serviceText() string {
	s := c.Service
	if c.Number != nil && *c.Number > 1 {
		s += fmt.Sprintf(" #%d", *c.Number)
	}
	if c.OneOff {
		s += " (run)"
	}
	return s
}

func (c Container) portsText() string {
	var out []string
	for _, p := range c.Ports {
		out = append(out, p.text())
	}
	if c.HostNetwork {
		out = append(out, "host's network")
	}
	return strings.Join(out, " ")
}

func (c Container) notes() []string {
	var out []string
	for _, n := range []struct {
		on   bool
		text string
	}{
		{c.OOMKilled, "OOM"}, {c.ImageStale, "old image"}, {c.Privileged, "privileged"}, {c.StartError != "", "start failed: " + c.StartError},
	} {
		if n.on {
			out = append(out, n.text)
		}
	}
	return out
}

// shortImage cuts an image that has no name to what people compare.
func shortImage(image string) string {
	if strings.HasPrefix(image, "sha256:") && len(image) > 19 {
		return image[:19]
	}
	return image
}
