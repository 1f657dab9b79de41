package parse

import (
	"cmp"
	"slices"
	"strings"
)

// A BridgePort is one port of a VLAN-aware bridge, or the bridge itself.
type BridgePort struct {
	Name  string
	PVID  *int        // the VLAN of untagged frames that come in; nil: none
	VLANs []VLANRange // by number
}

// A VLANRange is one or several VLANs of a port.
type VLANRange struct {
	First, Last int
	Untagged    bool // frames leave without a tag
}

// BridgeVLANs reads bridge -j vlan show (iproute2 5.10 to 6.x):
//
//	[{"ifname":"eno1","vlans":[{"vlan":1,"flags":["PVID","Egress Untagged"]},{"vlan":2,"vlanEnd":4094}]}]
//
// Ports are sorted by name. No VLAN-aware bridge is an empty list.
func BridgeVLANs(out []byte) ([]BridgePort, []Note, error) {
	list, notes, err := jsonList("bridge vlan", out)
	if err != nil {
		return nil, nil, err
	}
	ports := []BridgePort{}
	for _, o := range list {
		if len(o.fields) == 0 {
			continue
		}
		if o.text("ifname") == "" {
			o.note("ifname", "a name")
			continue
		}
		ports = append(ports, bridgePort(o))
	}
	slices.SortFunc(ports, func(a, b BridgePort) int { return strings.Compare(a.Name, b.Name) })
	return ports, *notes, nil
}

func bridgePort(o jsonObject) BridgePort {
	p := BridgePort{Name: o.text("ifname"), VLANs: []VLANRange{}}
	for _, v := range o.objects("vlans") {
		first, last := vlanNumber(v, "vlan"), vlanNumber(v, "vlanEnd")
		if last == nil {
			last = first
		}
		if first == nil || *last < *first {
			v.note("vlan", "1..4094")
			continue
		}
		flags := v.texts("flags")
		if slices.Contains(flags, "PVID") {
			p.PVID = first
		}
		p.VLANs = append(p.VLANs, VLANRange{*first, *last, slices.Contains(flags, "Egress Untagged")})
	}
	slices.SortFunc(p.VLANs, func(a, b VLANRange) int { return cmp.Compare(a.First, b.First) })
	return p
}

func vlanNumber(o jsonObject, key string) *int {
	n := o.integer(key)
	if n == nil || *n < 1 || *n > 4095 {
		return nil
	}
	return smallInt(n)
}
