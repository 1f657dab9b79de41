package report

import (
	"fmt"
	"slices"
	"strings"
)

// How a step of a check-up ended.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// A Step is one thing that was looked at, and what to do about it.
type Step struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// A Checkup is one host of a profile. Refused says why ssh_config gives no
// answer for it; then nothing else is known.
type Checkup struct {
	Name          string        `json:"name"`
	Role          string        `json:"role"`
	Node          string        `json:"node,omitempty"`
	Refused       string        `json:"refused,omitempty"`
	HostName      string        `json:"hostname,omitempty"`
	User          string        `json:"user,omitempty"`
	Port          int           `json:"port,omitempty"`
	ProxyJump     []string      `json:"proxy_jump"`
	IdentityFiles []string      `json:"identity_files"`
	Resolver      string        `json:"resolver,omitempty"`
	Level         string        `json:"level,omitempty"`
	FormsWorking  int           `json:"forms_working"`
	FormsTotal    int           `json:"forms_total"`
	Steps         []Step        `json:"steps"`
	Missing       []MissingForm `json:"missing"`
}

// Add records a step, cleaned.
func (c *Checkup) Add(name, status, message, hint string) {
	c.Steps = append(c.Steps, Step{Name: name, Status: status, Message: CleanError(message), Hint: CleanError(hint)})
}

// OK reports whether no step failed.
func (c *Checkup) OK() bool {
	for _, s := range c.Steps {
		if s.Status == Fail {
			return false
		}
	}
	return true
}

// Doctor is what `pvelens doctor` found.
type Doctor struct {
	Answer
	Nodes []Checkup `json:"nodes"`
}

// Tables shows the check-ups to people, a table a host.
func (d *Doctor) Tables() []Table {
	out := []Table{}
	for i, c := range d.Nodes {
		title := c.Name
		if c.Node != "" && c.Node != c.Name {
			title += " (node " + c.Node + ")"
		}
		t := Table{Title: title, Columns: []string{"step", "", "what"}}
		for _, s := range c.Steps {
			what := s.Message
			if s.Hint != "" {
				what += " → " + s.Hint
			}
			t.Rows = append(t.Rows, []string{s.Name, s.Status, what})
		}
		if len(c.ProxyJump) > 0 {
			t.Rows = append(t.Rows, []string{"jump", OK, strings.Join(c.ProxyJump, ", ")})
		}
		if c.FormsTotal > 0 {
			status := OK
			if len(c.Missing) > 0 {
				status = Warn
			}
			t.Rows = append(t.Rows, []string{"forms", status, fmt.Sprintf("%d of %d work", c.FormsWorking, c.FormsTotal)})
		}
		same := slices.IndexFunc(d.Nodes[:i], func(o Checkup) bool { return len(c.Missing) > 1 && slices.Equal(o.Missing, c.Missing) })
		if same >= 0 {
			t.Rows = append(t.Rows, []string{" ", " ", "the same are missing as on " + d.Nodes[same].Name})
		} else {
			t.Rows = append(t.Rows, missingRows(c.Missing)...)
		}
		out = append(out, t)
	}
	return out
}

// missingRows groups the forms that are missing by what they need.
func missingRows(missing []MissingForm) [][]string {
	var rows [][]string
	seen := map[string]bool{}
	for _, m := range missing {
		if seen[m.Needs] {
			continue
		}
		seen[m.Needs] = true
		needs := m.Needs
		if needs == "root" || needs == "www-data" {
			needs = needs + " would give"
		}
		rows = append(rows, []string{" ", " ", needs + ":"})
		for _, o := range missing {
			if o.Needs == m.Needs {
				rows = append(rows, []string{" ", " ", "  " + o.Form + ": " + o.Gives})
			}
		}
	}
	return rows
}
