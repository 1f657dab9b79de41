package parse

import (
	"slices"
	"strings"
)

// AptRepository is one Proxmox package repository of a node. Repositories whose
// address holds credentials are never sent, so they are not among these.
type AptRepository struct {
	File       string
	URIs       []string
	Types      []string // deb
	Suites     []string
	Components []string // pve-enterprise, pve-no-subscription and so on
	Enabled    bool
}

// AptRepositories reads the form apt-repos, by file. An empty output is a node
// without a Proxmox repository. A line that cannot be read becomes a note.
//
// Of the .sources files only four keys arrive, without the blank lines between
// the stanzas. A stanza begins where one of its keys repeats, or, in a file
// that begins with Enabled, at each Enabled.
//
// Program: grep -rso on /etc/apt. Input:
//
//	/etc/apt/sources.list.d/pve.list:deb http://download.proxmox.com/debian/pve bookworm pve-no-subscription
//	/etc/apt/sources.list.d/proxmox.sources:URIs: http://download.proxmox.com/debian/pve
func AptRepositories(out []byte) ([]AptRepository, []Note, error) {
	files := map[string][]Option{}
	_, notes, err := eachLine("apt repositories", "/etc/apt/FILE:LINE", out, func(line string) (struct{}, bool) {
		path, o, ok := cutAptLine(line)
		if ok {
			files[path] = append(files[path], o)
		}
		return struct{}{}, ok
	})
	if err != nil {
		return nil, nil, err
	}
	repos := []AptRepository{}
	for path, lines := range files {
		for _, r := range aptStanzas(lines) {
			if len(r.URIs) > 0 {
				r.File = path
				repos = append(repos, r)
			}
		}
	}
	slices.SortStableFunc(repos, func(a, b AptRepository) int { return strings.Compare(a.File, b.File) })
	return repos, notes, nil
}

func cutAptLine(line string) (path string, o Option, ok bool) {
	if !strings.HasPrefix(line, "/etc/apt/") {
		return "", o, false
	}
	for _, suffix := range []string{".list:", ".sources:"} {
		i := strings.Index(line, suffix)
		if i < 0 {
			continue
		}
		path, text := line[:i+len(suffix)-1], strings.TrimSpace(line[i+len(suffix):])
		if rest, isOne := strings.CutPrefix(text, "deb "); isOne {
			return path, Option{"deb", rest}, true
		}
		key, value, found := strings.Cut(text, ":")
		return path, Option{key, strings.TrimSpace(value)}, found
	}
	return "", o, false
}

func aptStanzas(lines []Option) []AptRepository {
	var repos []AptRepository
	seen := map[string]bool{}
	enabledFirst := lines[0].Key == "Enabled"
	for _, o := range lines {
		if o.Key == "deb" {
			repos = append(repos, oneLineRepository(o.Value))
			seen = map[string]bool{}
			continue
		}
		if len(seen) == 0 || seen[o.Key] || enabledFirst && o.Key == "Enabled" {
			repos = append(repos, AptRepository{Enabled: true})
			seen = map[string]bool{}
		}
		seen[o.Key] = true
		r := &repos[len(repos)-1]
		words := strings.Fields(o.Value)
		switch o.Key {
		case "Types":
			r.Types = words
		case "URIs":
			r.URIs = words
		case "Suites":
			r.Suites = words
		case "Components":
			r.Components = words
		case "Enabled":
			r.Enabled = parseBool(o.Value) == nil || *parseBool(o.Value)
		}
	}
	return repos
}

// oneLineRepository reads what follows deb: [options] URI SUITE COMPONENT….
func oneLineRepository(s string) AptRepository {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") {
		_, s, _ = strings.Cut(s, "]")
	}
	f := append(strings.Fields(s), "", "")
	r := AptRepository{Types: []string{"deb"}, Enabled: true}
	if f[0] != "" {
		r.URIs = f[:1:1]
	}
	if f[1] != "" {
		r.Suites = f[1:2:2]
	}
	for _, c := range f[2:] {
		if strings.HasPrefix(c, "#") {
			break
		}
		if c != "" {
			r.Components = append(r.Components, c)
		}
	}
	return r
}
