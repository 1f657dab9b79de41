package parse

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// HAState is what the HA manager and the nodes' local managers last wrote.
// Manager is nil where HA was never used.
type HAState struct {
	Manager *HAManager
	LRMs    []LRM // by node
}

// HAManager is manager_status. Timestamps are unix seconds, nil when missing.
type HAManager struct {
	Master    string
	Timestamp *int64
	Nodes     []HANodeState // by name
	Services  []HAService   // by SID
}

// HANodeState is a node in the manager's words: online, maintenance, unknown,
// fence or gone.
type HANodeState struct{ Name, State string }

// HAService is one resource: ct:101 or vm:200. State is started, stopped,
// fence, error, ignored and so on; Target is where it is on its way to.
type HAService struct {
	SID, Node, State, Target string
	Running                  *bool
}

// LRM is one node's local resource manager. Mode is active, restart, shutdown
// or maintenance; State is wait_for_agent_lock, active or lost_agent_lock. An
// old Timestamp means that it is dead, whatever the words say.
type LRM struct {
	Node, Mode, State string
	Timestamp         *int64
}

const managerStatusPath = "/etc/pve/ha/manager_status"

// ParseHAState reads the form ha-state. An empty output is a cluster without
// HA. A file that cannot be read becomes a note; if none can, that is an error.
//
// Program: grep -rs on files of PVE 7.4 to 9.2. Input:
//
//	/etc/pve/nodes/pve3/lrm_status:{"mode": "active", "results": {}, "state": "active", "timestamp": 1795970465}
func ParseHAState(out []byte) (*HAState, []Note, error) {
	files := map[string][]byte{}
	_, notes, err := eachLine("ha state", "/etc/pve/FILE:JSON", out, func(line string) (struct{}, bool) {
		path, text, ok := strings.Cut(line, ":")
		if node, isLRM := lrmNode(path); !ok || path != managerStatusPath && (!isLRM || node == "") {
			return struct{}{}, false
		}
		files[path] = append(append(files[path], text...), '\n')
		return struct{}{}, true
	})
	if err != nil {
		return nil, nil, err
	}
	s := &HAState{LRMs: []LRM{}}
	read := 0
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := s.read(path, files[path]); err != nil {
			notes = append(notes, Note{Text: err.Error()})
			continue
		}
		read++
	}
	if read == 0 && len(files) > 0 {
		return nil, nil, errors.New("ha state: want the JSON of manager_status or lrm_status")
	}
	return s, notes, nil
}

func lrmNode(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, nodesPrefix)
	node, ok2 := strings.CutSuffix(rest, "/lrm_status")
	return node, ok && ok2 && !strings.Contains(node, "/")
}

func (s *HAState) read(path string, raw []byte) error {
	if path == managerStatusPath {
		return s.manager(raw)
	}
	node, _ := lrmNode(path)
	var in struct {
		Mode, State jsonText
		Timestamp   jsonInt
	}
	if err := readJSON("lrm_status", raw, &in); err != nil {
		return err
	}
	s.LRMs = append(s.LRMs, LRM{Node: node, Mode: in.Mode.String(), State: in.State.String(), Timestamp: in.Timestamp.Value})
	return nil
}

func (s *HAState) manager(raw []byte) error {
	var in struct {
		Master    jsonText `json:"master_node"`
		Timestamp jsonInt
		Nodes     map[string]jsonText `json:"node_status"`
		Services  map[string]struct {
			Node, State, Target jsonText
			Running             jsonBool
		} `json:"service_status"`
	}
	if err := readJSON("manager_status", raw, &in); err != nil {
		return err
	}
	m := &HAManager{Master: in.Master.String(), Timestamp: in.Timestamp.Value, Nodes: []HANodeState{}, Services: []HAService{}}
	for _, name := range slices.Sorted(maps.Keys(in.Nodes)) {
		// A node without a name is left over from one that was removed.
		if name != "" {
			m.Nodes = append(m.Nodes, HANodeState{Name: name, State: in.Nodes[name].String()})
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(in.Services)) {
		v := in.Services[sid]
		m.Services = append(m.Services, HAService{SID: sid, Node: v.Node.String(), State: v.State.String(), Target: v.Target.String(), Running: v.Running.Value})
	}
	s.Manager = m
	return nil
}
