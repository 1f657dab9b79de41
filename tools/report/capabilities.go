package report

import (
	"fmt"
	"strings"
)

// Access is what pvelens may do on one host with the rights at hand. Level is
// root, sudo, gate, www-data (files of the cluster, no root), any (neither) or
// none (no connection). Missing lists the forms that do not work for want of
// rights.
type Access struct {
	Node           string        `json:"node,omitempty"`
	SSHDestination string        `json:"ssh_destination"`
	Role           string        `json:"role"`
	Cluster        string        `json:"cluster,omitempty"`
	Level          string        `json:"level"`
	FormsWorking   int           `json:"forms_working"`
	FormsTotal     int           `json:"forms_total"`
	Missing        []MissingForm `json:"missing"`
}

// A MissingForm is a form that does not work, what it needs, and what it would
// tell.
type MissingForm struct {
	Form  string `json:"form"`
	Needs string `json:"needs"`
	Gives string `json:"gives"`
}

// Capabilities is the answer of capabilities: what this pvelens can ask, and
// how far its rights reach on each host.
type Capabilities struct {
	Answer
	Version         string   `json:"version"`
	AllowlistSHA256 string   `json:"allowlist_sha256"`
	ReadOnly        bool     `json:"read_only"`
	Tools           []string `json:"tools"`
	Profiles        []string `json:"profiles"`
	Items           []Access `json:"items"`
}

// Tables shows the capabilities to people.
func (c *Capabilities) Tables() []Table {
	t := Table{Columns: []string{"host", "node", "role", "level", ">forms", "missing"}}
	for _, a := range c.Items {
		var missing []string
		for _, m := range a.Missing {
			missing = append(missing, m.Form)
		}
		list := strings.Join(missing, " ")
		if len(missing) > 8 {
			list = strings.Join(missing[:8], " ") + fmt.Sprintf(" and %d more", len(missing)-8)
		}
		t.Rows = append(t.Rows, []string{a.SSHDestination, a.Node, a.Role, a.Level, fmt.Sprintf("%d/%d", a.FormsWorking, a.FormsTotal), list})
	}
	t.Notes = []string{fmt.Sprintf("version %s, allowlist sha256 %s, %d tools, none of which can change anything", c.Version, c.AllowlistSHA256, len(c.Tools))}
	return []Table{t}
}
