package parse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const replicationStatePath = "/var/lib/pve-manager/pve-replication-state.json"

// ReplicationState is how one job of a guest on this node went. Times are unix
// seconds, nil for never. FailCount counts failures since the last success, so
// it falls back to 0. Job and target are as in TYPE/TARGET of the state file.
type ReplicationState struct {
	VMID      int
	Type      string // local
	Target    string // node
	LastSync  *int64
	LastTry   *int64
	Duration  *float64 // seconds
	FailCount *int64
	Error     string
}

// ReplicationStates reads the form replication, by guest and target. nil
// without an error means that no job ever ran on this node. An entry that
// cannot be read becomes a note.
//
// Program: tail -v of a file of PVE 7.4 to 9.2. Input:
//
//	{"102":{"local/pve3":{"last_sync":1795968000,"last_try":1795968000,"fail_count":0,"duration":4.31}}}
func ReplicationStates(out []byte) ([]ReplicationState, []Note, error) {
	files, err := Files(out, []string{replicationStatePath})
	if err != nil {
		return nil, nil, fmt.Errorf("replication: %w", err)
	}
	raw := bytes.TrimSpace(files[replicationStatePath])
	if len(raw) == 0 {
		return nil, nil, nil
	}
	var guests map[string]map[string]json.RawMessage
	if err := readJSON(replicationStatePath, raw, &guests); err != nil {
		return nil, nil, err
	}
	states, notes := []ReplicationState{}, []Note(nil)
	for id, jobs := range guests {
		for job, entry := range jobs {
			s, ok := replicationState(id, job, entry)
			if !ok {
				notes = append(notes, Note{Text: replicationStatePath + ": want VMID, TYPE/TARGET and an object"})
				continue
			}
			states = append(states, s)
		}
	}
	slices.SortFunc(states, func(a, b ReplicationState) int {
		return cmp.Or(cmp.Compare(a.VMID, b.VMID), strings.Compare(a.Target, b.Target), strings.Compare(a.Type, b.Type))
	})
	return states, notes, nil
}

func replicationState(id, job string, entry json.RawMessage) (ReplicationState, bool) {
	var in struct {
		LastSync  jsonInt   `json:"last_sync"`
		LastTry   jsonInt   `json:"last_try"`
		Duration  jsonFloat `json:"duration"`
		FailCount jsonInt   `json:"fail_count"`
		Error     jsonText  `json:"error"`
	}
	vmid, err := strconv.Atoi(id)
	kind, target, ok := strings.Cut(job, "/")
	if err != nil || vmid <= 0 || !ok || json.Unmarshal(entry, &in) != nil {
		return ReplicationState{}, false
	}
	return ReplicationState{
		VMID: vmid, Type: kind, Target: target, LastSync: moment(in.LastSync), LastTry: moment(in.LastTry),
		Duration: in.Duration.Value, FailCount: in.FailCount.Value, Error: in.Error.String(),
	}, true
}

// moment is a time in which 0 stands for never.
func moment(n jsonInt) *int64 {
	if n.Value == nil || *n.Value <= 0 {
		return nil
	}
	return n.Value
}
