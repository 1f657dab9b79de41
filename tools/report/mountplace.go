package report

import (
	"fmt"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// A guestArea is a part of a guest's file tree that backups treat as one: the
// root filesystem, a mount point, or a raw mount entry.
type guestArea struct {
	key      string // rootfs, mp0, lxc.mount.entry
	source   string // the storage's name for it, or a path on the node
	target   string
	excluded string // why no backup contains it; "" if backups do
}

// areas are the parts of a container, the longest path first.
func areas(s parse.GuestSettings) []guestArea {
	reasons := map[string]string{}
	for _, v := range Excluded("lxc", s) {
		reasons[v.Key] = v.Reason
	}
	var out []guestArea
	for _, d := range s.Disks {
		a := guestArea{key: d.Key, source: d.Volume, target: cleanPath(d.MountPoint), excluded: reasons[d.Key]}
		switch {
		case d.Bus == "rootfs":
			a.target = "/"
		case d.Bus != "mp" || a.target == "":
			continue
		}
		if a.source == "" {
			a.source = d.Source
		}
		out = append(out, a)
	}
	for _, m := range s.Raw.Mounts {
		out = append(out, guestArea{"lxc.mount.entry", m.Source, cleanPath("/" + strings.TrimLeft(m.Target, "/")), "a raw mount entry: never in a backup"})
	}
	slices.SortStableFunc(out, func(a, b guestArea) int { return len(b.target) - len(a.target) })
	return out
}

// areaOf finds the area that a path of a container lies on. With the guest's own
// mount table that is what the kernel does: the mount on top decides, and a mount
// that is no area of the guest is followed to the area with the same filesystem.
// problem says why it is not known; foreign is a mount that lies on no area.
func areaOf(path string, all []guestArea, mounts []parse.GuestMount) (a guestArea, foreign, problem string) {
	if mounts == nil {
		for _, a := range all {
			if below(path, a.target) {
				return a, "", ""
			}
		}
		return guestArea{}, "", "the guest's configuration names no root filesystem"
	}
	top, count := topMount(path, mounts)
	switch {
	case count == 0:
		return guestArea{}, "", "the guest's mount table does not hold the path"
	case count > 1:
		return guestArea{}, "", "several filesystems are mounted at " + Clean(top.Target)
	}
	for _, a := range all {
		if a.target == cleanPath(top.Target) {
			return a, "", ""
		}
	}
	real := cleanPath(top.Root + "/" + strings.TrimPrefix(path, cleanPath(top.Target)))
	best, found := guestMountOf(real, top.Device, all, mounts)
	if !found {
		return guestArea{}, Clean(top.Target), ""
	}
	return best, "", ""
}

// topMount returns the mount with the longest target above path, and how many
// there are at that place.
func topMount(path string, mounts []parse.GuestMount) (top parse.GuestMount, count int) {
	for _, m := range mounts {
		target := cleanPath(m.Target)
		switch {
		case !below(path, target):
		case count == 0 || len(target) > len(cleanPath(top.Target)):
			top, count = m, 1
		case target == cleanPath(top.Target):
			top, count = m, count+1
		}
	}
	return top, count
}

// guestMountOf finds the area whose mount shows a directory of a filesystem: the
// one with the longest root above it.
func guestMountOf(dir, device string, all []guestArea, mounts []parse.GuestMount) (best guestArea, found bool) {
	longest := -1
	for _, a := range all {
		for _, m := range mounts {
			root := cleanPath(m.Root)
			if cleanPath(m.Target) == a.target && m.Device == device && below(dir, root) && len(root) > longest {
				best, found, longest = a, true, len(root)
			}
		}
	}
	return best, found
}

// partElsewhere names the first place below a path where another part of the
// guest, or a filesystem that is none, is mounted; a container that has the path
// sees that too.
func partElsewhere(src string, all []guestArea, mounts []parse.GuestMount) string {
	strictly := func(target string) bool { return target != src && below(target, src) }
	var out []string
	for _, a := range all {
		if a.excluded != "" && strictly(a.target) && !strings.HasPrefix(a.target, "/dev/") {
			out = append(out, Clean(a.target))
		}
	}
	for _, m := range mounts {
		target := cleanPath(m.Target)
		if strictly(target) && !ofSystem(target) && !slices.ContainsFunc(all, func(a guestArea) bool { return a.target == target }) {
			out = append(out, Clean(target))
		}
	}
	if out == nil {
		return ""
	}
	return slices.Min(out)
}

// ofSystem reports whether a mount point is one of the kernel's or of a runtime's
// own, which hold no data.
func ofSystem(target string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run", "/var/run", "/var/lib/lxcfs"} {
		if below(target, dir) {
			return true
		}
	}
	for _, part := range []string{"/overlay2/", "/overlay/", "/containers/", "/overlay-containers/", "/rootfs/overlayfs/", "/netns/"} {
		if strings.Contains(target, part) && !strings.Contains(target, "/volumes/") {
			return true
		}
	}
	return false
}

// elsewhere names what no backup contains and a symbolic link could lead to: areas
// of the guest, and filesystems that are mounted inside it.
func elsewhere(all []guestArea, mounts []parse.GuestMount) []string {
	var out []string
	for _, m := range mounts {
		target := cleanPath(m.Target)
		if slices.ContainsFunc(all, func(a guestArea) bool { return a.target == target }) || ofSystem(target) || strings.Contains(target, "/volumes/") {
			continue
		}
		if _, found := guestMountOf(cleanPath(m.Root), m.Device, all, mounts); !found {
			out = append(out, Clean(target)+" (mounted inside)")
		}
	}
	for _, a := range all {
		if a.excluded != "" && !strings.HasPrefix(a.target, "/dev/") {
			out = append(out, fmt.Sprintf("%s (%s)", Clean(a.target), a.key))
		}
	}
	slices.Sort(out)
	return out
}
