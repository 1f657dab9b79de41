package parse

import "strings"

// StartDelay is how long a node waits after boot before it starts guests.
type StartDelay struct {
	Node    string
	Seconds int64
}

// StartDelays reads the form startup-delay. A node without the setting, whose
// delay is 0, has no entry. A line that cannot be read becomes a note.
//
// Program: grep -rsE on /etc/pve/nodes of PVE 7.4 to 9.2. Input:
//
//	/etc/pve/nodes/pve1/config:startall-onboot-delay: 10
func StartDelays(out []byte) ([]StartDelay, []Note, error) {
	return eachLine("start delays", nodesPrefix+"NODE/config:startall-onboot-delay: SECONDS", out, func(line string) (StartDelay, bool) {
		rest, ok := strings.CutPrefix(line, nodesPrefix)
		node, text, ok2 := strings.Cut(rest, "/config:")
		value, ok3 := afterKey(text, "startall-onboot-delay")
		seconds := parseInt(value)
		if !ok || !ok2 || !ok3 || seconds == nil || node == "" || strings.Contains(node, "/") {
			return StartDelay{}, false
		}
		return StartDelay{Node: node, Seconds: *seconds}, true
	})
}
