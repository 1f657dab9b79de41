package parse

import "testing"

func TestBridgeVLANs(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []BridgePort
		notes    []string
		err      string
	}{
		{
			"a trunk and an access port", `[{"ifname":"tap200i0","vlans":[{"vlan":20,"flags":["PVID","Egress Untagged"]}]},{},{"ifname":"eno1","vlans":[{"vlan":2,"vlanEnd":4094},{"vlan":1,"flags":["PVID","Egress Untagged"]}]},{"ifname":"eno2"}]`,
			[]BridgePort{
				{Name: "eno1", PVID: new(1), VLANs: []VLANRange{{1, 1, true}, {2, 4094, false}}},
				{Name: "eno2", VLANs: []VLANRange{}},
				{Name: "tap200i0", PVID: new(20), VLANs: []VLANRange{{20, 20, true}}},
			}, []string{}, "",
		},
		{"no VLAN-aware bridge", "[ ]", []BridgePort{}, []string{}, ""},
		{"impossible", `[{"ifname":"a","vlans":[{"vlan":5000},{"vlan":9,"vlanEnd":3}]}]`, []BridgePort{{Name: "a", VLANs: []VLANRange{}}}, []string{"line 1: vlans.vlan: want 1..4094", "line 1: vlans.vlan: want 1..4094"}, ""},
		{"nothing", "", nil, nil, "bridge vlan: want a JSON array of objects, got nothing"},
		{"text", "port vlan-id", nil, nil, "got something else at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := BridgeVLANs([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}
