package parse

import (
	"errors"
	"strconv"
	"strings"
)

// Quorum is corosync's own view. Quorate is what it says, never computed from
// counts.
type Quorum struct {
	Quorate         bool
	Blocked         bool // activity is blocked until votes come back
	Nodes           *int64
	ExpectedVotes   *int64
	HighestExpected *int64
	TotalVotes      *int64
	Needed          *int64
	Flags           []string
	Members         []QuorumMember // the nodes that are there
	QDevice         *QuorumDevice  // nil: none
}

// QuorumMember is one node that takes part. Name is an address where no names
// are printed. Device says how the node sees the QDevice, as A,V,NMW; empty
// without one.
type QuorumMember struct {
	ID     int64
	Votes  *int64
	Name   string
	Local  bool
	Device string
}

// QuorumDevice is the QDevice as the asked node sees it: it answers, and it
// casts its vote.
type QuorumDevice struct {
	Votes         *int64
	Alive, Voting bool
}

// ParseQuorum reads corosync-quorumtool -s, and pvecm status, which begins with
// a block more. It fails without a line Quorate. A row of the membership table
// that cannot be read becomes a note.
//
// Program: corosync-quorumtool of corosync 3.1. Input:
//
//	Quorum:           2 Activity blocked
//	         1          1 pve1 (local)
//	0x00000001          1    A,V,NMW 10.20.0.11
//	0x00000000          1            Qdevice
func ParseQuorum(out []byte) (*Quorum, []Note, error) {
	var q Quorum
	var notes []Note
	known, table, number := false, false, 0
	for line := range strings.Lines(string(out)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || strings.Trim(line, "-") == "":
		case f[0] == "Nodeid" && len(f) > 1:
			table = true
		case table:
			if !q.member(f) {
				notes = append(notes, Note{Line: number, Text: "want NODEID VOTES NAME"})
			}
		default:
			known = q.line(line) || known
		}
	}
	if !known {
		return nil, nil, errors.New("quorum: want a line Quorate: Yes or No")
	}
	q.judgeDevice()
	return &q, notes, nil
}

// line reads one line above the table and reports whether it was Quorate.
func (q *Quorum) line(line string) bool {
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch strings.TrimSpace(key) {
	case "Quorate":
		q.Quorate = strings.EqualFold(value, "yes")
		return q.Quorate || strings.EqualFold(value, "no")
	case "Nodes":
		q.Nodes = parseInt(value)
	case "Expected votes":
		q.ExpectedVotes = parseInt(value)
	case "Highest expected":
		q.HighestExpected = parseInt(value)
	case "Total votes":
		q.TotalVotes = parseInt(value)
	case "Quorum":
		q.Needed = parseInt(firstField(value))
		q.Blocked = strings.Contains(value, "blocked")
	case "Flags":
		q.Flags = strings.Fields(value)
	}
	return false
}

func (q *Quorum) member(f []string) bool {
	if len(f) < 3 {
		return false
	}
	id, err := strconv.ParseInt(f[0], 0, 64)
	votes := parseInt(f[1])
	if err != nil || votes == nil {
		return false
	}
	if id == 0 {
		q.QDevice = &QuorumDevice{Votes: votes}
		return true
	}
	m := QuorumMember{ID: id, Votes: votes}
	rest := f[2:]
	if rest[len(rest)-1] == "(local)" {
		m.Local, rest = true, rest[:len(rest)-1]
	}
	if len(rest) > 1 {
		m.Device, rest = rest[0], rest[1:]
	}
	if len(rest) != 1 {
		return false
	}
	m.Name = rest[0]
	q.Members = append(q.Members, m)
	return true
}

// judgeDevice takes the word of the asked node, else of any: A is alive, V
// votes; NA and NV are their opposites, NR means not registered.
func (q *Quorum) judgeDevice() {
	if q.QDevice == nil {
		return
	}
	flags := ""
	for _, m := range q.Members {
		if flags == "" || m.Local {
			flags = m.Device
		}
	}
	for flag := range strings.SplitSeq(flags, ",") {
		q.QDevice.Alive = q.QDevice.Alive || flag == "A"
		q.QDevice.Voting = q.QDevice.Voting || flag == "V"
	}
}
