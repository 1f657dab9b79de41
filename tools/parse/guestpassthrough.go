package parse

// PassedDevice is a device of the node inside a guest. Kind is pci, usb, dev,
// serial, parallel or virtiofs. Hosts are addresses or paths on the node (also
// the words spice and socket, which tie the guest to none); Mapping is the
// cluster-wide name that stands for them.
type PassedDevice struct {
	Key     string
	Index   int
	Kind    string
	Hosts   []string
	Mapping string
	Options []Option
}

// parsePassedDevice reads, for example
//
//	hostpci0: 0000:01:00,pcie=1,x-vga=1
//	usb1: mapping=zigbee,usb3=1
//	dev0: /dev/dri/renderD128,gid=104,mode=0660
func parsePassedDevice(key, kind string, index int, value string) (PassedDevice, bool) {
	d := PassedDevice{Key: key, Index: index, Kind: kind}
	bare := "host"
	if kind == "virtiofs" {
		bare = "dirid"
	}
	for _, o := range splitOptions(value, bare) {
		switch o.Key {
		case "host", "path":
			d.Hosts = append(d.Hosts, splitList(o.Value)...)
		case "mapping", "dirid":
			d.Mapping = o.Value
		default:
			d.Options = append(d.Options, o)
		}
	}
	return d, d.Hosts != nil || d.Mapping != ""
}
