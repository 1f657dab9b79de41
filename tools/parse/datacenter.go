package parse

import (
	"net/netip"
)

// Datacenter are the settings of the whole cluster. What is not written is
// empty or nil.
type Datacenter struct {
	CRS                []Option // ha, ha-rebalance-on-start
	HAShutdownPolicy   string   // freeze, failover, conditional, migrate
	MigrationType      string   // secure, insecure
	MigrationNetwork   netip.Prefix
	ReplicationType    string
	ReplicationNetwork netip.Prefix
	MaxWorkers         *int64
	Fencing            string
	NextIDLower        *int64
	NextIDUpper        *int64
	TagStyle           []Option
	RegisteredTags     []string
	MACPrefix          string
	BandwidthLimits    []Option
}

// ParseDatacenter reads the form datacenter. An empty output has no setting. A
// line that cannot be read becomes a note.
//
// Program: grep -sE on /etc/pve/datacenter.cfg of PVE 7.4 to 9.2. Input:
//
//	migration: secure,network=192.168.20.0/24
func ParseDatacenter(out []byte) (*Datacenter, []Note, error) {
	var d Datacenter
	notes, err := keyValues("datacenter", out, d.set)
	if err != nil {
		return nil, nil, err
	}
	return &d, notes, nil
}

func (d *Datacenter) set(key, value string) bool {
	switch key {
	case "crs":
		d.CRS = splitOptions(value, "ha")
	case "ha":
		d.HAShutdownPolicy = optionValue(value, "shutdown_policy")
	case "migration":
		return network(value, &d.MigrationType, &d.MigrationNetwork)
	case "replication":
		return network(value, &d.ReplicationType, &d.ReplicationNetwork)
	case "max_workers":
		return setInt(&d.MaxWorkers, value)
	case "fencing":
		return setText(&d.Fencing, value)
	case "next-id":
		return d.setNextID(value)
	case "tag-style":
		d.TagStyle = splitOptions(value, "")
	case "registered-tags":
		d.RegisteredTags = splitSet(value)
	case "mac_prefix":
		return setText(&d.MACPrefix, value)
	case "bwlimit":
		d.BandwidthLimits = splitOptions(value, "default")
	}
	return true
}

// network reads secure,network=192.168.20.0/24.
func network(value string, kind *string, to *netip.Prefix) bool {
	ok := true
	for _, o := range splitOptions(value, "type") {
		switch o.Key {
		case "type":
			*kind = o.Value
		case "network":
			*to, ok = parseAddress(o.Value)
		}
	}
	return ok
}

func (d *Datacenter) setNextID(value string) bool {
	ok := true
	for _, o := range splitOptions(value, "lower") {
		switch o.Key {
		case "lower":
			ok = setInt(&d.NextIDLower, o.Value) && ok
		case "upper":
			ok = setInt(&d.NextIDUpper, o.Value) && ok
		}
	}
	return ok
}
