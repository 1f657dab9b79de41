package tools

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
	"pvelens/profiles"
	"pvelens/tools/report"
	"pvelens/transport"
)

const (
	pveDown = "ipcc_send_rec[1] failed: Connection refused\nUnable to load access control list: Connection refused\n"
	pveUser = "ipcc_send_rec[1] failed: Unknown error -1\nUnable to load access control list: Unknown error -1\n"
)

// TestWhyACommandFailed: what is missing is called by its name, and an exit that
// is sudo's or a closed journal's is no empty answer.
func TestWhyACommandFailed(t *testing.T) {
	for _, tt := range []struct {
		name, form, user string
		become           allowlist.Become
		exit             int
		stdout, stderr   string
		code             report.Code // "" is good
		message          string
	}{
		{"pct as a user", "lxc-list", "viewer", allowlist.AsIs, 255, "", pveUser, report.PermissionDenied, "lxc-list needs root on the node"},
		{"pct as root without pmxcfs", "lxc-list", "root", allowlist.AsIs, 255, "", pveDown, report.NotFound, "lxc-list: the cluster filesystem (pmxcfs) is not running"},
		{"quorum as a user", "quorum", "viewer", allowlist.AsIs, 1, "", "Cannot initialize CMAP service\n", report.PermissionDenied, "quorum needs root on the node"},
		{"quorum as root without corosync", "quorum", "root", allowlist.AsIs, 1, "", "Cannot initialize CMAP service\n", report.NotFound, "quorum: corosync is not running"},
		{"quorum through the gate without corosync", "quorum", "pvelens", allowlist.ViaGate, 1, "", "Cannot initialize QUORUM service\n", report.NotFound, "quorum: corosync is not running"},
		{"journal as a user", "storage-reasons", "viewer", allowlist.AsIs, 1, "", "No journal files were opened due to insufficient permissions.\n", report.PermissionDenied, "storage-reasons needs root on the node, or the group systemd-journal"},
		{"journal as a user with one", "storage-reasons", "viewer", allowlist.AsIs, 0, "", "Hint: You are currently not seeing messages from other users and the system.\n", report.PermissionDenied, "storage-reasons needs root on the node, or the group systemd-journal"},
		{"journal as a user with one, quiet", "storage-reasons", "viewer", allowlist.AsIs, 0, "", "", report.PermissionDenied, "storage-reasons needs root on the node, or the group systemd-journal"},
		{"journal as a user of its group", "storage-reasons", "viewer", allowlist.AsIs, 0, "1.0 pve1 pvestatd[1]: storage 'x' is not online\n", "", "", ""},
		{"journal without a line", "storage-reasons", "root", allowlist.AsIs, 0, "", "", "", ""},
		{"sudo wants a password, grep finds nothing", "storage-reasons", "asker", allowlist.Sudo, 1, "", "sudo: a password is required\n", report.PermissionDenied, "sudo does not run storage-reasons for this user: a password is required"},
		{"sudo has another rule", "lxc-list", "asker", allowlist.Sudo, 1, "", "Sorry, user asker is not allowed to execute '/usr/sbin/pct list' as root on pve1.\n", report.PermissionDenied, "sudo does not run lxc-list for this user: Sorry, user asker is not allowed to execute '/usr/sbin/pct list' as root on pve1."},
		{"sudo warns and runs", "lxc-df", "asker", allowlist.Sudo, 1, "/ 1 2 3\n", "sudo: unable to resolve host pve1: Name or service not known\n", "", ""},
		{"sudo is not there", "lxc-list", "asker", allowlist.Sudo, 127, "", "/usr/bin/timeout: failed to run command '/usr/bin/sudo': No such file or directory\n", report.PermissionDenied, "lxc-list needs root, and sudo is not installed on the node"},
		{"the gate finds no sudo", "lxc-list", "pvelens", allowlist.ViaGate, 127, "", "pvelens-gate: form lxc-list needs root: /usr/bin/sudo: no such file or directory\n", report.PermissionDenied, "lxc-list needs root, and sudo is not installed on the node"},
		{"the program is not there", "lxc-list", "root", allowlist.AsIs, 127, "", "/usr/bin/timeout: failed to run command '/usr/sbin/pct': No such file or directory\n", report.Unsupported, "lxc-list: /usr/sbin/pct is not installed on the node"},
		{"files as a user without the group", "state", "stranger", allowlist.AsIs, 1, "", "/usr/bin/tail: cannot open '/etc/pve/.members' for reading: Permission denied\n/usr/bin/tail: cannot open '/etc/pve/.rrd' for reading: No such file or directory\n", report.PermissionDenied, "state needs root or the group www-data on the node"},
		{"root is denied", "quorum", "root", allowlist.AsIs, 1, "", "corosync-quorumtool: Permission denied\n", report.PermissionDenied, "quorum was denied on the node although it ran as root: corosync-quorumtool: Permission denied"},
		{"another gate", "quorum", "pvelens", allowlist.ViaGate, 126, "", "pvelens-gate: refused (no-form)\n", report.Unsupported, "the gate on the node refuses quorum"},
	} {
		f := formByID[tt.form]
		root, raised := asRoot(&transport.Host{Target: &profiles.Target{User: tt.user}, Become: tt.become}, f)
		out := output{Stdout: []byte(tt.stdout), Stderr: []byte(tt.stderr), Exit: tt.exit, Form: f, Become: tt.become, Root: root}
		bad := failure(out)
		if raised {
			if sudo := sudoTrouble(out); sudo != nil {
				bad = sudo
			}
		}
		got := [2]string{}
		if bad != nil {
			got = [2]string{string(bad.Code), bad.Message}
			if bad.Hint == "" {
				t.Errorf("%s: no hint", tt.name)
			}
		}
		if d := cmp.Diff([2]string{string(tt.code), tt.message}, got); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
	}
}
