package parse

import (
	"cmp"
	"slices"
	"strings"
)

// Packages are the installed Proxmox packages of a node.
type Packages struct {
	Versions map[string]string // by package, installed ones only
	Kernels  []Kernel          // oldest first
}

// Kernel is one installed kernel. Release is what uname -r says when it runs.
type Kernel struct{ Package, Version, Release string }

// PVEManager returns the version that Proxmox calls its own; empty if it is not
// installed.
func (p *Packages) PVEManager() string { return p.Versions["pve-manager"] }

// NewestKernel returns the release of the newest installed kernel, empty if
// there is none.
func (p *Packages) NewestKernel() string {
	if len(p.Kernels) == 0 {
		return ""
	}
	return p.Kernels[len(p.Kernels)-1].Release
}

// ParsePackages reads the form node-packages. Only packages whose state is
// installed count. Of the kernel packages those with a whole release in their
// name are kernels; the others only pull one in. A line that cannot be read
// becomes a note.
//
// Program: dpkg-query of dpkg 1.20 to 1.22. Input (with tabs):
//
//	proxmox-kernel-6.17.4-2-pve-signed	6.17.4-2	ii
func ParsePackages(out []byte) (*Packages, []Note, error) {
	rows, notes, err := eachLine("packages", "PACKAGE VERSION STATE", out, func(line string) ([]string, bool) {
		f := strings.Split(line, "\t")
		if len(f) == 1 {
			f = strings.Fields(line)
		}
		return f, len(f) == 3 && f[0] != ""
	})
	if err != nil {
		return nil, nil, err
	}
	p := &Packages{Versions: map[string]string{}, Kernels: []Kernel{}}
	for _, f := range rows {
		if strings.TrimSpace(f[2]) != "ii" {
			continue
		}
		p.Versions[f[0]] = f[1]
		if release, ok := kernelRelease(f[0]); ok {
			p.Kernels = append(p.Kernels, Kernel{Package: f[0], Version: f[1], Release: release})
		}
	}
	slices.SortFunc(p.Kernels, func(a, b Kernel) int {
		return cmp.Or(CompareReleases(a.Release, b.Release), strings.Compare(a.Package, b.Package))
	})
	return p, notes, nil
}

// kernelRelease reads proxmox-kernel-6.17.4-2-pve-signed and
// pve-kernel-5.15.152-1-pve.
func kernelRelease(name string) (string, bool) {
	release, ok := strings.CutPrefix(name, "proxmox-kernel-")
	if !ok {
		release, ok = strings.CutPrefix(name, "pve-kernel-")
	}
	release = strings.TrimSuffix(release, "-signed")
	version, isPVE := strings.CutSuffix(release, "-pve")
	return release, ok && isPVE && strings.Count(version, ".") >= 2 && version[0] >= '0' && version[0] <= '9'
}

// CompareReleases orders versions and kernel releases: runs of digits count as
// numbers, so 6.8.12-10-pve is after 6.8.12-9-pve.
func CompareReleases(a, b string) int {
	for a != "" && b != "" {
		x, restA := cutRun(a)
		y, restB := cutRun(b)
		c := strings.Compare(x, y)
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			c = cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
		}
		if c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// cutRun cuts a run of digits, or of anything else, off the front.
func cutRun(s string) (run, rest string) {
	end := 1
	for end < len(s) && isDigit(s[end]) == isDigit(s[0]) {
		end++
	}
	return s[:end], s[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
