package parse

import "strings"

// Stamp is when a file was last changed, in unix seconds, and its size.
type Stamp struct {
	Path     string
	Modified int64
	Size     int64
}

// Stamps reads the form stamps, in the order of the output. A file that is
// missing has no stamp. A line that cannot be read becomes a note.
//
// Program: stat --format=%Y:%s:%n of coreutils. Input:
//
//	1795900000:29810:/var/lib/pve-manager/pkgupdates
func Stamps(out []byte) ([]Stamp, []Note, error) {
	return eachLine("stamps", "SECONDS:BYTES:PATH", out, func(line string) (Stamp, bool) {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return Stamp{}, false
		}
		modified, size := parseInt(f[0]), parseInt(f[1])
		if modified == nil || size == nil {
			return Stamp{}, false
		}
		return Stamp{Path: f[2], Modified: *modified, Size: *size}, true
	})
}
