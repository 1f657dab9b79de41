package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// A VM's NICs with every odd but valid option, and a container's that the node
// manages.
func TestNICs(t *testing.T) {
	for _, tt := range []struct {
		kind, text string
		want       []NIC
	}{
		{"qemu", `net1: virtio=BC:24:11:00:02:01,bridge=vmbr1,mtu=1,queues=4,tag=30
net10: virtio=BC:24:11:00:02:10,bridge=vnet12,mtu=9000
net2: e1000=BC:24:11:00:02:02,bridge=vmbr0,link_down=1,rate=12.5
net3: model=virtio,macaddr=bc:24:11:00:02:03,bridge=vmbr0,trunks=10-20;30;40
net4: virtio=BC:24:11:00:02:04,firewall=0
`, []NIC{
			{Key: "net1", Model: "virtio", MAC: "BC:24:11:00:02:01", Bridge: "vmbr1", VLAN: n64(30), MTUOfBridge: true, Queues: n64(4)},
			{Key: "net2", Model: "e1000", MAC: "BC:24:11:00:02:02", Bridge: "vmbr0", LinkDown: true, RateMBs: Ptr(12.5)},
			{Key: "net3", Model: "virtio", MAC: "BC:24:11:00:02:03", Bridge: "vmbr0", Trunks: []string{"10-20", "30", "40"}},
			{Key: "net4", Model: "virtio", MAC: "BC:24:11:00:02:04"},
			{Key: "net10", Model: "virtio", MAC: "BC:24:11:00:02:10", Bridge: "vnet12", MTU: n64(9000)},
		}},
		{"lxc", "net3: name=wan0.7,bridge=vmbr3,hwaddr=BC:24:11:00:01:53,ip=dhcp,ip6=dhcp,host-managed=1,mtu=1492,type=veth\n", []NIC{
			{Key: "net3", Name: "wan0.7", MAC: "BC:24:11:00:01:53", Bridge: "vmbr3", MTU: n64(1492), HostManaged: true, IPv4Mode: "dhcp", IPv6Mode: "dhcp"},
		}},
	} {
		cfg, err := parse.GuestConfigFile(tt.kind, "a", 210, []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, Configuration(Guest{VMID: 210, Type: tt.kind}, cfg).Current.NICs); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.kind, d)
		}
	}
}
