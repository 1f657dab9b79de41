package parse

import "strings"

// A configSection is one section of a Proxmox configuration file: a header
// "TYPE: ID" (or "ID" alone in the mapping files), then indented "KEY VALUE".
type configSection struct {
	file, kind, id string
	lines          []sectionLine
}

type sectionLine struct {
	number     int
	key, value string
}

// readSections reads the output of grep -H over such files. paths are the files
// asked; a line of none of them, and a property without a section before it, is
// bad. Sections keep the order of the output.
func readSections(out []byte, paths ...string) (sections []configSection, bad []int) {
	number := 0
	for line := range strings.Lines(string(out)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		path, text := cutPath(line, paths)
		last := len(sections) - 1
		switch {
		case path == "" || strings.TrimSpace(text) == "":
			bad = append(bad, number)
		case text[0] != ' ' && text[0] != '\t':
			kind, id := cutHeader(text)
			sections = append(sections, configSection{file: path, kind: kind, id: id})
		case last < 0 || sections[last].file != path:
			bad = append(bad, number)
		default:
			text = strings.TrimSpace(text)
			end := strings.IndexAny(text+" ", " \t")
			sections[last].lines = append(sections[last].lines, sectionLine{number, text[:end], strings.TrimSpace(text[end:])})
		}
	}
	return sections, bad
}

func cutPath(line string, paths []string) (path, text string) {
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(line, p); ok && strings.HasPrefix(rest, ":") {
			return p, rest[1:]
		}
	}
	return "", ""
}

func cutHeader(text string) (kind, id string) {
	kind, id, ok := strings.Cut(text, ":")
	if !ok {
		return "", strings.TrimSpace(text)
	}
	return strings.TrimSpace(kind), strings.TrimSpace(id)
}

// read hands the lines of a section to a function and collects the numbers of
// those whose value could not be read.
func (s configSection) read(bad *[]int, set func(key, value string) bool) {
	for _, l := range s.lines {
		if !set(l.key, l.value) {
			*bad = append(*bad, l.number)
		}
	}
}

// setSwitch stores a flag for which the key alone means yes.
func setSwitch(to *bool, value string) bool {
	if value == "" {
		*to = true
		return true
	}
	return setFlag(to, value)
}

// setVMIDs stores a list of VMIDs; what is no number makes it fail, the numbers
// are kept.
func setVMIDs(to *[]int, value string) bool {
	all := true
	for _, s := range splitList(value) {
		n := parseInt(s)
		if n == nil || *n <= 0 || *n > 999999999 {
			all = false
			continue
		}
		*to = append(*to, int(*n))
	}
	return all
}
