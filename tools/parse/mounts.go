package parse

import (
	"strings"
)

// Mount is one line of a node's mount table. What stands before an @ in the
// source can be a user with a password, so it is left out.
type Mount struct {
	Source, Target, Type string
	ReadOnly             bool
}

// Mounts reads the form mounts, in mount order: of two mounts on one target the
// later one is seen. A line that cannot be read becomes a note.
//
// Program: grep -oE on /proc/self/mounts. Input:
//
//	192.168.20.50:/volume1/proxmox /mnt/pve/nas-nfs nfs4 rw
func Mounts(out []byte) ([]Mount, []Note, error) {
	return eachLine("mounts", "SOURCE TARGET TYPE rw|ro", out, func(line string) (Mount, bool) {
		f := strings.Fields(line)
		if len(f) != 4 || (f[3] != "rw" && f[3] != "ro") {
			return Mount{}, false
		}
		source := unescapeOctal(f[0])
		source = source[strings.LastIndexByte(source, '@')+1:]
		return Mount{Source: source, Target: unescapeOctal(f[1]), Type: f[2], ReadOnly: f[3] == "ro"}, true
	})
}
