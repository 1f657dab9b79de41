package parse

// VzdumpDefaults are a node's defaults for backups that do not say otherwise.
type VzdumpDefaults struct {
	Storage     string
	Mode        string
	Prune       []Option
	MaxFiles    *int64 // the older form of Prune
	ExcludePath []string
	StdExcludes *bool
	Remove      *bool
	Fleecing    []Option
}

// ParseVzdumpDefaults reads the form vzdump-defaults. An empty output has no
// default set. A line that cannot be read becomes a note.
//
// Program: grep -sE on /etc/vzdump.conf of PVE 7.4 to 9.2. Input:
//
//	prune-backups: keep-last=3
func ParseVzdumpDefaults(out []byte) (*VzdumpDefaults, []Note, error) {
	var d VzdumpDefaults
	notes, err := keyValues("vzdump defaults", out, d.set)
	if err != nil {
		return nil, nil, err
	}
	return &d, notes, nil
}

func (d *VzdumpDefaults) set(key, value string) bool {
	switch key {
	case "storage":
		return setText(&d.Storage, value)
	case "mode":
		return setText(&d.Mode, value)
	case "prune-backups":
		d.Prune = splitOptions(value, "")
	case "maxfiles":
		return setInt(&d.MaxFiles, value)
	case "exclude-path":
		d.ExcludePath = append(d.ExcludePath, splitList(value)...)
	case "stdexcludes":
		return setBool(&d.StdExcludes, value)
	case "remove":
		return setBool(&d.Remove, value)
	case "fleecing":
		d.Fleecing = splitOptions(value, "enabled")
	}
	return true
}
