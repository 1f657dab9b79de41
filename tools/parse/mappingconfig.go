package parse

// ResourceMapping is a cluster-wide name for devices or directories of nodes.
// Kind is pci, usb or directory.
type ResourceMapping struct {
	Kind, ID    string
	Entries     []MappingEntry
	MDev        bool
	LiveMigrate bool
	OtherKeys   []string
}

// MappingEntry is what the name stands for on one node. Path is empty for a USB
// device that is named by its ID alone.
type MappingEntry struct {
	Node, Path, ID string
	Options        []Option
}

func resourceMapping(kind string, s configSection, bad *[]int) ResourceMapping {
	m := ResourceMapping{Kind: kind, ID: s.id, Entries: []MappingEntry{}}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "map":
			e := mappingEntry(value)
			m.Entries = append(m.Entries, e)
			return e.Node != ""
		case "mdev":
			return setSwitch(&m.MDev, value)
		case "live-migration-capable":
			return setSwitch(&m.LiveMigrate, value)
		}
		m.OtherKeys = appendOnce(m.OtherKeys, key)
		return true
	})
	return m
}

func mappingEntry(value string) MappingEntry {
	var e MappingEntry
	for _, o := range splitOptions(value, "") {
		switch o.Key {
		case "node":
			e.Node = o.Value
		case "path":
			e.Path = o.Value
		case "id":
			e.ID = o.Value
		default:
			e.Options = append(e.Options, o)
		}
	}
	return e
}
