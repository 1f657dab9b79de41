package main

import (
	"fmt"
	"os"
	"strings"

	"pvelens/allowlist"
	"pvelens/fixtures"
)

// standIn names the program whose place the test binary takes.
const standIn = "PVELENS_TEST_PROGRAM"

// standInProgram answers as a program of a Proxmox node would: it prints the
// recording to root, and to others what the real one prints to them.
func standInProgram(program string, args []string) int {
	c, err := allowlist.Check(allowlist.PVE, append([]string{program}, args...)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "not permitted")
		return 2
	}
	if c.Form().Rights == allowlist.Root && os.Geteuid() != 0 {
		return refuseUser(c)
	}
	a, ok := fixtures.HeimlaborPVE1().Answer(c)
	if !ok { // the recordings are of pve1; pve3 is another one like it
		words := strings.Split(strings.ReplaceAll(strings.Join(c.Argv(), "\x1f"), "/pve3/", "/pve1/"), "\x1f")
		if c, err = allowlist.Check(allowlist.PVE, words...); err == nil {
			a, ok = fixtures.HeimlaborPVE1().Answer(c)
		}
	}
	if !ok && program == "/bin/ping" {
		fmt.Println("1 packets transmitted, 0 received, 100% packet loss, time 0ms")
		return 1
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "no recording")
		return 2
	}
	os.Stdout.Write(a.Stdout)
	os.Stderr.Write(a.Stderr)
	return a.Exit
}

// refuseUser is what the programs print to a user who is not root: pct, qm and
// pvesh as recorded, the others from their sources.
func refuseUser(c allowlist.Command) int {
	switch program := c.Argv()[0]; program {
	case "/usr/sbin/pct", "/usr/sbin/qm", "/usr/bin/pvesh":
		for i := range 3 {
			fmt.Fprintf(os.Stderr, "ipcc_send_rec[%d] failed: Unknown error -1\n", i+1)
		}
		fmt.Fprintln(os.Stderr, "Unable to load access control list: Unknown error -1")
		return 255
	case "/usr/sbin/corosync-quorumtool":
		fmt.Fprintln(os.Stderr, "Cannot initialize CMAP service")
		return 1
	case "/usr/bin/journalctl":
		fmt.Fprintln(os.Stderr, "No journal files were opened due to insufficient permissions.")
		return 1
	case "/sbin/lvs":
		fmt.Fprintln(os.Stderr, "  WARNING: Running as a non-root user. Functionality may be unavailable.\n  /run/lock/lvm/P_global:aux: open failed: Permission denied")
		return 5
	case "/usr/sbin/smartctl":
		disk := c.Argv()[len(c.Argv())-1]
		fmt.Printf(`{"json_format_version":[1,0],"smartctl":{"version":[7,3],"argv":["smartctl"],"messages":[{"string":"Smartctl open device: %s failed: Permission denied","severity":"error"}],"exit_status":2}}`+"\n", disk)
		return 2
	default:
		fmt.Fprintf(os.Stderr, "%s: Permission denied\n", program)
		return 1
	}
}
