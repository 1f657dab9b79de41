package parse

import (
	"errors"
	"strconv"
	"strings"
)

// ContainerRow is one row of pct list. Status is running or stopped. Name is
// empty for a container without a hostname, for which pct prints CT and the
// VMID. Lock is empty without one.
type ContainerRow struct {
	VMID               int
	Status, Lock, Name string
}

// PctList reads pct list, in the order of the output. An empty output is a node
// without containers; text without the header is an error. Lines before the
// header are skipped. A row that cannot be read becomes a note.
//
// The Lock column is mostly blank and can overflow, so neither offsets nor a
// fixed number of words tell the columns: a name has no blank, hence three
// words have no lock and four have one.
//
// Program: pct list of PVE 7.4 to 9.2. Input:
//
//	VMID       Status     Lock         Name
//	1234567    running    snapshot-delete a-very-long-container-hostname.lab.example
func PctList(out []byte) ([]ContainerRow, []Note, error) {
	rows, err := tableRows("pct list", "VMID", out)
	if err != nil {
		return nil, nil, err
	}
	return eachLine("pct list", "VMID STATUS [LOCK] NAME", rows, func(line string) (ContainerRow, bool) {
		f := strings.Fields(line)
		if len(f) != 3 && len(f) != 4 {
			return ContainerRow{}, false
		}
		vmid, err := strconv.Atoi(f[0])
		if err != nil || vmid <= 0 {
			return ContainerRow{}, false
		}
		r := ContainerRow{VMID: vmid, Status: f[1], Name: f[len(f)-1]}
		if len(f) == 4 {
			r.Lock = f[2]
		}
		if r.Name == "CT"+f[0] {
			r.Name = ""
		}
		return r, true
	})
}

// tableRows blanks what stands before the rows, so that line numbers stay; the
// header begins with the word.
func tableRows(subject, word string, out []byte) ([]byte, error) {
	if strings.TrimSpace(string(out)) == "" {
		return nil, nil
	}
	rest := string(out)
	for skipped := 1; rest != ""; skipped++ {
		line, after, _ := strings.Cut(rest, "\n")
		if firstField(line) == word {
			return []byte(strings.Repeat("\n", skipped) + after), nil
		}
		rest = after
	}
	return nil, errors.New(subject + ": want a header that begins with " + word)
}
