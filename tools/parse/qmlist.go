package parse

import (
	"math"
	"strconv"
	"strings"
)

// VMRow is one row of qm list. Status is running or stopped, with --full also
// paused, io-error and so on. Name is empty for a VM without one, for which qm
// prints VM and the VMID. BootDiskBytes is nil where qm prints 0.00: there is
// none, or its size is not known. PID is nil without a process.
type VMRow struct {
	VMID          int
	Name, Status  string
	MemoryBytes   *int64
	BootDiskBytes *int64
	PID           *int64
}

// QmList reads qm list, in the order of the output. An empty output is a node
// without VMs; text without the header is an error. Lines before the header are
// skipped. A row that cannot be read becomes a note.
//
// A name can have blanks and push the columns, so a row is read from both ends.
//
// Program: qm list of PVE 7.4 to 9.2. Input:
//
//	VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID
//	 110 VM 110               stopped    4096               0.00 0
func QmList(out []byte) ([]VMRow, []Note, error) {
	rows, err := tableRows("qm list", "VMID", out)
	if err != nil {
		return nil, nil, err
	}
	return eachLine("qm list", "VMID NAME STATUS MEM BOOTDISK PID", rows, func(line string) (VMRow, bool) {
		f := strings.Fields(line)
		if len(f) < 5 {
			return VMRow{}, false
		}
		vmid, err := strconv.Atoi(f[0])
		last := f[len(f)-4:]
		memory, disk, pid := parseInt(last[1]), parseFloat(last[2]), parseInt(last[3])
		if err != nil || vmid <= 0 || memory == nil || disk == nil || pid == nil || *memory > 1<<40 || *disk > 1<<30 {
			return VMRow{}, false
		}
		r := VMRow{VMID: vmid, Name: qmName(line, f[0]), Status: last[0], MemoryBytes: new(*memory << 20)}
		if *disk > 0 {
			r.BootDiskBytes = new(int64(math.Round(*disk * (1 << 30))))
		}
		if *pid > 0 {
			r.PID = pid
		}
		return r, true
	})
}

// qmName cuts the VMID off the front and four words off the end.
func qmName(line, vmid string) string {
	line = strings.TrimPrefix(strings.TrimSpace(line), vmid)
	for range 4 {
		line = strings.TrimSpace(line)
		line = line[:max(strings.LastIndexAny(line, " \t"), 0)]
	}
	name := strings.TrimSpace(line)
	if name == "VM "+vmid {
		return ""
	}
	return name
}
