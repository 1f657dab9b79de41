package tools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/tools/report"
)

// procOf is what node-proc prints where the files are all there are.
func procOf(text string) fixtures.Answer {
	a := fixtures.Answer{Stdout: []byte(text), Exit: 1}
	for _, f := range allowlist.Forms() {
		for _, word := range f.Argv {
			if f.ID == "node-proc" && strings.HasPrefix(word, "/") && !strings.Contains(text, word) {
				a.Stderr = fmt.Appendf(a.Stderr, "/usr/bin/tail: cannot open '%s' for reading: No such file or directory\n", word)
			}
		}
	}
	return a
}

// What pvestatd leaves out is asked for, or said to be missing: an answer that
// lacks it is not complete.
func TestUnreported(t *testing.T) {
	const (
		node   = "pve2-node/solo:5000::%d:0.5:8:0.1:0.01:33554432000:10000000000:8589934592:0:100000000000:20000000000:1:2\n"
		vm     = "pve2.3-vm/100:100:vm:running:0:%d:2:0.05:2147483648:1000000000:8350298112:0:1:2:3:4\n"
		ct     = "pve2.3-vm/101:100:ct:%s:0:%d:2:0.05:2147483648:1000000000:8350298112:5:1:2:3:4\n"
		u      = "pve2.3-vm/101:U:U:U:U:U:U:U:U:U:U:U:U:U:U:U\n"
		vmlist = "==> /etc/pve/.vmlist <==\n{\"version\":3,\"ids\":{\"100\":{\"node\":\"solo\",\"type\":\"qemu\"},\"101\":{\"node\":\"solo\",\"type\":\"lxc\"}}}\n\n"
		listed = "VMID       Status     Lock         Name                \n101        stopped                 ct                  \n"
	)
	clock := time.Date(2026, 11, 29, 16, 55, 0, 0, time.UTC)
	now := clock.Unix() - 5
	both := fmt.Sprintf(node, now) + fmt.Sprintf(vm, now)
	tests := []struct {
		name, rrd, pctList, state      string // state of 101
		nodes, guests, capacity, sizes bool   // is the answer complete?
	}{
		{"all is reported", both + fmt.Sprintf(ct, "running", now), listed, "running", true, true, true, true},
		{"a guest is left out", both, listed, "stopped", true, true, false, true},
		{"every field of a guest is undefined", both + u, listed, "stopped", true, true, false, true},
		{"a state that is no known word", both + fmt.Sprintf(ct, "dreaming", now), listed, "stopped", true, true, false, true},
		{"a guest that no list knows either", both, "", "unknown", true, false, false, true},
		{"nothing at all", "", listed, "stopped", false, false, false, false},
		{"every field of the node is undefined", "pve2-node/solo:U:U:U:U:U:U:U:U:U:U:U:U:U:U:U\n" + fmt.Sprintf(vm, now), listed, "stopped", false, false, false, false},
		{"guests without their node", fmt.Sprintf(vm, now), listed, "stopped", false, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := replay(t, alone("solo", clock, map[string]fixtures.Answer{
				"state":         printed("==> /etc/pve/.members <==\n{\"nodename\":\"solo\",\"version\":1}\n\n" + vmlist + "==> /etc/pve/.rrd <==\n" + tt.rrd),
				"guest-configs": printed("/etc/pve/nodes/solo/qemu-server/100.conf:name: vm\n/etc/pve/nodes/solo/lxc/101.conf:hostname: ct\n"),
				"pools":         {Exit: 1}, "ha-state": {Exit: 1}, "cluster-configs": {Exit: 2},
				"clock":         printed(fmt.Sprintf("%d.000000000+0000\n", clock.Unix())),
				"lxc-list":      printed(tt.pctList),
				"qemu-list":     {Exit: 1, Stderr: []byte("broken\n")},
				"node-packages": printed("pve-manager\t8.4.1\tii \n"),
				"node-proc":     procOf("==> /proc/uptime <==\n5000.10 100.00\n\n==> /proc/meminfo <==\nMemTotal: 32768000 kB\nMemAvailable: 20000000 kB\n"),
				"node-df":       printed("Type Inodes IUsed 1B-blocks Used Avail Filesystem Mounted on\next4 10 1 100 20 75 /dev/sda1 /\n"),
				"mounts":        printed("/dev/sda1 / ext4 rw\n"), "storage-reasons": {Exit: 1},
			}), fixtures.Options{})
			var got string
			for _, g := range answer[*report.GuestList](t, env, "list_guests", `{}`).Items {
				if g.VMID == 101 {
					got = g.Status
				}
			}
			if got != tt.state {
				t.Errorf("101 is %s, want %s", got, tt.state)
			}
			for tool, want := range map[string]bool{"list_nodes": tt.nodes, "list_guests": tt.guests, "get_node_capacity": tt.capacity, "list_storage": tt.sizes} {
				b, err := Encode(answer[report.Tabler](t, env, tool, `{}`))
				if err != nil {
					t.Fatal(err)
				}
				if text := string(b); strings.Contains(text, `"complete":true`) != want || !want && strings.Contains(text, `"problems":[]`) {
					t.Errorf("%s: want complete %v, and a problem if not: %s", tool, want, text)
				}
			}
		})
	}
}
