package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pvelens/tools/parse"
)

// A FoundContainer is a container and what of it matched: name, image, project,
// service, port.
type FoundContainer struct {
	Container
	Matched []string `json:"matched"`
}

// A MaybeContainer is one that may listen on the port asked for, and why that
// cannot be told.
type MaybeContainer struct {
	Where
	Name   string `json:"name"`
	Image  string `json:"image"`
	Reason string `json:"reason"`
}

// FoundContainers is the answer of find_containers. CannotTell are containers
// that may listen on the port; NotSearched are the guests and hosts whose
// containers are not known: the one that is looked for may be there.
type FoundContainers struct {
	Answer
	Searched    int              `json:"searched"`
	NotSearched []ContainerPlace `json:"not_searched"`
	Items       []FoundContainer `json:"items"`
	Page
	CannotTell []MaybeContainer `json:"cannot_tell"`
	Note       string           `json:"note,omitempty"`
}

// A ContainerSearch is what find_containers looks for: every part that is set
// must match. Text matches in name, image, project or service, and a number in
// it as a published port too; Port is a port of the guest, Protocol limits it.
type ContainerSearch struct {
	Text, Name, Image, Project, Protocol string
	Port                                 int
}

// Find searches the answers of all places.
func (q ContainerSearch) Find(answers []RuntimeAnswer) *FoundContainers {
	out := &FoundContainers{NotSearched: []ContainerPlace{}, Items: []FoundContainer{}, CannotTell: []MaybeContainer{}}
	for _, a := range answers {
		switch a.Place.Status {
		case PlaceOK, PlaceNoDocker:
			out.Searched++
		default:
			out.NotSearched = append(out.NotSearched, a.Place)
		}
	}
	for _, row := range Containers(answers) {
		matched, ok := q.match(row)
		if ok {
			out.Items = append(out.Items, FoundContainer{row, matched})
		}
	}
	if port := q.port(); port != 0 {
		for _, a := range answers {
			out.CannotTell = append(out.CannotTell, q.maybe(a, port)...)
		}
		out.Note = "only ports that containers publish are known; a program of the guest itself is not seen"
	}
	slices.SortFunc(out.CannotTell, func(a, b MaybeContainer) int {
		return strings.Compare(a.text()+a.Name, b.text()+b.Name)
	})
	return out
}

// port is the port that is looked for, 0 for none.
func (q ContainerSearch) port() int {
	if q.Port != 0 {
		return q.Port
	}
	if n, err := strconv.Atoi(q.Text); err == nil && n > 0 && n < 1<<16 {
		return n
	}
	return 0
}

func (q ContainerSearch) match(c Container) (matched []string, ok bool) {
	part := func(what, text, want string) bool {
		if want != "" && strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			if !slices.Contains(matched, what) {
				matched = append(matched, what)
			}
			return true
		}
		return false
	}
	listens := q.port() != 0 && slices.ContainsFunc(c.Ports, func(p ContainerPort) bool {
		return !p.Configured && p.Listens(q.port()) && (q.Protocol == "" || p.Protocol == q.Protocol)
	})
	ok = true
	if q.Text != "" {
		name, image, project, service := part("name", c.Name, q.Text), part("image", c.Image, q.Text), part("project", c.Project, q.Text), part("service", c.Service, q.Text)
		ok = name || image || project || service || q.Port == 0 && listens
	}
	ok = ok && (q.Name == "" || part("name", c.Name, q.Name)) && (q.Image == "" || part("image", c.Image, q.Image))
	if q.Project != "" {
		ok = ok && strings.EqualFold(c.Project, q.Project) && part("project", c.Project, q.Project)
	}
	if q.Port != 0 {
		ok = ok && listens
	}
	if ok && listens {
		matched = append(matched, "port")
	}
	return matched, ok
}

// maybe returns the running containers whose ports the runtime does not know.
func (q ContainerSearch) maybe(a RuntimeAnswer, port int) []MaybeContainer {
	var out []MaybeContainer
	for _, c := range a.Containers {
		row := ContainerRow(a, c)
		if row.State != string(parse.StateRunning) || !(q.sameText(row)) {
			continue
		}
		reason := ""
		switch {
		case row.HostNetwork:
			reason = fmt.Sprintf("it uses the guest's network: whether it listens on %d is not known to the runtime", port)
		case a.Place.Runtime == "podman" && len(c.Networks) == 0 && len(c.Ports) == 0 && c.Pod == "":
			reason = "podman names no network: it may use the guest's"
		}
		if reason != "" {
			out = append(out, MaybeContainer{row.Where, row.Name, row.Image, reason})
		}
	}
	return out
}

// sameText reports whether a container fits the search but for the port.
func (q ContainerSearch) sameText(c Container) bool {
	q.Port, q.Protocol = 0, ""
	if _, err := strconv.Atoi(q.Text); err == nil {
		q.Text = ""
	}
	_, ok := q.match(c)
	return ok
}

// Brief cuts IDs, as in concise lists.
func (f *FoundContainers) Brief() {
	for i := range f.Items {
		f.Items[i].ID = f.Items[i].ID[:min(len(f.Items[i].ID), 12)]
	}
}

// Tables shows what was found to people.
func (f *FoundContainers) Tables() []Table {
	rows := make([]Container, len(f.Items))
	for i, c := range f.Items {
		rows[i] = c.Container
	}
	t := containerTable(rows, f.Page.note("containers"))
	t.Title = "Found"
	t.Columns = append(t.Columns, "by")
	for i, c := range f.Items {
		t.Rows[i] = append(t.Rows[i], strings.Join(c.Matched, ", "))
	}
	if f.Note != "" {
		t.Notes = append(t.Notes, f.Note)
	}
	out := []Table{t}
	if len(f.CannotTell) > 0 {
		m := Table{Title: "Cannot tell", Columns: []string{"where", "name", "image", "why"}}
		for _, c := range f.CannotTell {
			m.Rows = append(m.Rows, []string{c.text(), c.Name, shortImage(c.Image), c.Reason})
		}
		out = append(out, m)
	}
	if len(f.NotSearched) > 0 {
		p := placeTable(f.NotSearched, 0)
		p.Title = "Not searched"
		out = append(out, p)
	}
	return out
}
