package parse

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// A GuestFilesystem is one filesystem as df sees it inside a container.
type GuestFilesystem struct {
	Source     string // a device, a dataset, "//nas/media", tmpfs
	Mountpoint string
	Total      int64 // bytes
	Used       int64
	Available  int64
	Virtual    bool // memory or an overlay, no disk: full is no trouble
	Remote     bool // somebody else's space
}

// dfRow: the source and the mount point may hold blanks, so the numbers between
// them are what is looked for.
var dfRow = regexp.MustCompile(`^(.*?)\s+(\d+)\s+(\d+)\s+(-?\d+)\s+(?:(\d+)%|-)\s+(/.*)$`)

// DiskFree reads df -P -k inside a guest (coreutils and busybox, any language of
// the heading): kibibytes.
//
//	Filesystem     1024-blocks    Used Available Capacity Mounted on
//	/dev/loop0         8154588 2060452   5658068      27% /
//
// Rows are sorted by mount point; one without size (0 blocks) is left out, one of
// another shape is noted. Without a heading it is an error.
func DiskFree(out []byte) ([]GuestFilesystem, []Note, error) {
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if !strings.Contains(lines[0], "1024") || dfRow.MatchString(lines[0]) {
		return nil, nil, errors.New("df: want a heading with 1024-blocks in line 1")
	}
	mounts, notes := []GuestFilesystem{}, []Note{}
	for i, line := range lines[1:] {
		line = strings.TrimRight(line, "\r")
		if line == "" {
			continue
		}
		m := dfRow.FindStringSubmatch(line)
		if m == nil {
			notes = append(notes, Note{i + 2, "want a source, three numbers, a percentage and a mount point"})
			continue
		}
		mount, ok := guestFilesystem(m)
		if !ok {
			notes = append(notes, Note{i + 2, "want kibibytes below 2^53"})
		} else if mount.Total > 0 {
			mounts = append(mounts, mount)
		}
	}
	slices.SortFunc(mounts, func(a, b GuestFilesystem) int { return strings.Compare(a.Mountpoint, b.Mountpoint) })
	return mounts, notes, nil
}

func guestFilesystem(m []string) (GuestFilesystem, bool) {
	var kib [3]int64
	for i := range kib {
		n := parseInt(m[i+2])
		if n == nil || *n < 0 && i < 2 || *n >= 1<<53 || *n <= -1<<53 {
			return GuestFilesystem{}, false
		}
		kib[i] = *n
	}
	return GuestFilesystem{
		Source: m[1], Mountpoint: m[6], Total: kib[0] << 10, Used: kib[1] << 10, Available: max(0, kib[2]) << 10,
		Virtual: slices.Contains(virtualSources, m[1]), Remote: isRemoteSource(m[1]),
	}, true
}

// virtualSources are what stands where a device would; "none" is lxc's own /dev.
var virtualSources = []string{"tmpfs", "devtmpfs", "udev", "none", "overlay", "shm", "ramfs", "lxcfs", "proc", "sysfs", "efivarfs", "run", "dev", "cgroup", "cgroup2", "fuse-overlayfs"}

// isRemoteSource: "nas:/export", "[2001:db8::1]:/export", "//nas/media".
func isRemoteSource(source string) bool {
	host, _, nfs := strings.Cut(source, ":/")
	return strings.HasPrefix(source, "//") || nfs && !strings.Contains(strings.Trim(host, "[]"), "/")
}
