package report

import "slices"

// The states of a guest that QEMU or Proxmox names, beside running, stopped and
// unknown. A paused VM, one with an I/O error and so on has a process but does
// not work.
var vmStates = []string{
	"paused", "suspended", "prelaunch", "inmigrate", "postmigrate", "finish-migrate", "save-vm", "restore-vm", "shutdown",
	"io-error", "internal-error", "watchdog", "guest-panicked", "colo",
}

// GuestState is a guest's state as a node names it, or unknown when the word is
// none that is known.
func GuestState(word string) string {
	if word == Running || word == Stopped || slices.Contains(vmStates, word) {
		return word
	}
	return Unknown
}
