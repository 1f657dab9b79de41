//go:build unix

package profiles

import (
	"io/fs"
	"syscall"
)

const openNonblock = syscall.O_NONBLOCK

// ownerOf is the numeric owner of a file.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
