package parse

import "strings"

// A GuestMount is one mount inside a container, as the kernel of its node sees
// it. Device is major:minor of the filesystem, Root the directory of that
// filesystem that is mounted: two mounts with one Device show the same data
// where their roots overlap.
type GuestMount struct {
	Device string
	Root   string
	Target string
}

// GuestMounts reads the first five fields of /proc/self/mountinfo (Linux 5 and
// 6), in the order of the kernel: of two mounts at one place the later one is on
// top.
//
//	703 701 7:2 / /var/lib/docker
//
// A line that is cut becomes a note.
func GuestMounts(out []byte) ([]GuestMount, []Note, error) {
	return eachLine("mountinfo", "ID PARENT MAJOR:MINOR ROOT TARGET", out, func(line string) (GuestMount, bool) {
		f := strings.Fields(line)
		if len(f) < 5 || parseInt(f[0]) == nil || !strings.Contains(f[2], ":") || !strings.HasPrefix(f[4], "/") {
			return GuestMount{}, false
		}
		return GuestMount{Device: f[2], Root: unescapeOctal(f[3]), Target: unescapeOctal(f[4])}, true
	})
}
