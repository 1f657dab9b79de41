package parse

import (
	"strings"
)

// Pool is one resource pool. Pools nest by name: prod/db is inside prod, but
// its members are not members of prod. Comment is text by people.
type Pool struct {
	Name     string
	Parent   string // empty at the top
	Comment  string
	VMIDs    []int
	Storages []string
}

// Pools reads the pool lines of user.cfg, in the order of the file. An empty
// output is a cluster without pools. A line that cannot be read becomes a note.
//
// Program: grep -sE ^pool: on /etc/pve/user.cfg of PVE 7.4 to 9.2. Input:
//
//	pool:prod/db:verschachtelt:104::
func Pools(out []byte) ([]Pool, []Note, error) {
	return eachLine("pools", "pool:NAME:COMMENT:VMIDS:STORAGES:", out, func(line string) (Pool, bool) {
		f := strings.Split(line, ":")
		if f[0] != "pool" || len(f) < 5 || f[1] == "" {
			return Pool{}, false
		}
		p := Pool{Name: f[1], Comment: decodeDescription(f[2]), VMIDs: []int{}, Storages: splitSet(f[4])}
		if i := strings.LastIndexByte(p.Name, '/'); i > 0 {
			p.Parent = p.Name[:i]
		}
		return p, setVMIDs(&p.VMIDs, f[3])
	})
}
