package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An AuditSummary counts what an audit found, after its filters, and what it
// looked at. Text says the same in one line.
type AuditSummary struct {
	Text     string `json:"text"`
	Critical int    `json:"critical"`
	Warning  int    `json:"warning"`
	Info     int    `json:"info"`
	Subjects int    `json:"subjects"`
	Clusters int    `json:"clusters"`
	Nodes    int    `json:"nodes"`
	Guests   int    `json:"guests"`
	Storages int    `json:"storages"`
}

// An AuditGroup is everything that was found about one subject, the worst first.
// Name is a guest's name. MoreFindings counts those left out.
type AuditGroup struct {
	Subject      string    `json:"subject"`
	Name         string    `json:"name,omitempty"`
	Node         string    `json:"node,omitempty"`
	Worst        Severity  `json:"worst"`
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"more_findings,omitempty"`
}

// Audit is the answer of config_audit: a summary, then the subjects, the worst
// first. Everything lists all findings, for exports.
type Audit struct {
	Answer
	Summary AuditSummary `json:"summary"`
	Items   []AuditGroup `json:"items"`
	Page

	everything []AuditGroup
}

// Everything is every group that the filters chose, whatever the page shows,
// each finding with its evidence and fix.
func (a *Audit) Everything() []AuditGroup { return a.everything }

// An AuditFilter chooses findings; an empty field chooses all. Subject is a whole
// subject, its beginning up to a slash, or one of its parts, such as 101 or pve1.
type AuditFilter struct {
	Min     Severity
	Code    string
	Subject string
}

func (f AuditFilter) keeps(x Finding) bool {
	return (f.Min == "" || x.Severity.Rank() <= f.Min.Rank()) &&
		(f.Code == "" || strings.EqualFold(x.Code, f.Code)) &&
		(f.Subject == "" || concerns(x.Subject, f.Subject))
}

func concerns(subject, wanted string) bool {
	subject, wanted = strings.ToLower(subject), strings.ToLower(strings.Trim(wanted, "/"))
	return strings.Contains("/"+subject+"/", "/"+wanted+"/")
}

// Group makes an audit of findings: each once, by subject, those that the filter
// chooses. names and nodes tell a subject's name and node where it has one.
func Group(findings []Finding, filter AuditFilter, names, nodes map[string]string) *Audit {
	a := &Audit{everything: []AuditGroup{}}
	at := map[string]int{}
	seen := map[string]bool{}
	SortFindings(findings)
	for _, f := range findings {
		key := strings.Join([]string{f.Code, f.Subject, f.Message}, "\x00")
		if seen[key] || !filter.keeps(f) {
			continue
		}
		seen[key] = true
		i, ok := at[f.Subject]
		if !ok {
			i = len(a.everything)
			at[f.Subject] = i
			a.everything = append(a.everything, AuditGroup{Subject: f.Subject, Name: names[f.Subject], Node: nodes[f.Subject], Worst: f.Severity})
		}
		a.everything[i].Findings = append(a.everything[i].Findings, f)
		switch f.Severity {
		case Critical:
			a.Summary.Critical++
		case Warning:
			a.Summary.Warning++
		default:
			a.Summary.Info++
		}
	}
	slices.SortStableFunc(a.everything, func(x, y AuditGroup) int {
		return cmp.Or(cmp.Compare(x.Worst.Rank(), y.Worst.Rank()), cmp.Compare(x.Subject, y.Subject))
	})
	a.Summary.Subjects = len(a.everything)
	return a
}

// Say writes the summary's line. problems is how many sources could not be read.
func (a *Audit) Say(complete bool, problems int) {
	s := &a.Summary
	s.Text = fmt.Sprintf("%d critical, %s, %d info on %s; looked at %s, %s, %s",
		s.Critical, many(s.Warning, "warning"), s.Info, many(s.Subjects, "subject"), many(s.Nodes, "node"), many(s.Guests, "guest"), many(s.Storages, "storage"))
	if !complete {
		s.Text += fmt.Sprintf("; incomplete: %s, see problems", many(problems, "problem"))
	}
}

// Show cuts the page out. A concise one leaves out the fixes, which the catalogue
// tells, and of the evidence all but the number that a limit was held against.
func (a *Audit) Show(offset, limit int, detailed bool) {
	a.Items, a.Page = Cut(a.everything, offset, limit)
	if detailed {
		return
	}
	for i := range a.Items {
		fs := slices.Clone(a.Items[i].Findings)
		for k := range fs {
			fs[k].Fix = ""
			if fs[k].Threshold == "" {
				fs[k].Evidence = []Evidence{}
			} else {
				fs[k].Evidence = slices.Clone(fs[k].Evidence[:min(len(fs[k].Evidence), 1)])
			}
		}
		a.Items[i].Findings = fs
	}
}

// Trim takes findings off the longest group of the page; false when every group
// has few.
func (a *Audit) Trim(least int) bool {
	longest := -1
	for i, g := range a.Items {
		if len(g.Findings) > least && (longest < 0 || len(g.Findings) > len(a.Items[longest].Findings)) {
			longest = i
		}
	}
	return longest >= 0 && Drop(&a.Items[longest].Findings, &a.Items[longest].MoreFindings, least)
}

// Tables shows the audit to people.
func (a *Audit) Tables() []Table {
	t := Table{Title: a.Summary.Text, Columns: []string{"severity", "subject", "code", "what", "limit"}}
	for _, g := range a.Items {
		name := g.Subject
		if g.Name != "" {
			name += " " + g.Name
		}
		for _, f := range g.Findings {
			t.Rows = append(t.Rows, []string{string(f.Severity), name, f.Code, f.Message, f.Threshold})
			name = `"`
		}
		if g.MoreFindings > 0 {
			t.Rows = append(t.Rows, []string{"", `"`, "", fmt.Sprintf("and %d more", g.MoreFindings), ""})
		}
	}
	t.Notes = append(t.Notes, a.Page.note("subjects"))
	return []Table{t}
}
