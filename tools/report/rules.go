package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Severity grades a finding.
type Severity string

// The severities.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Rank orders severities: critical is 0.
func (s Severity) Rank() int { return slices.Index([]Severity{Critical, Warning, Info}, s) }

// A Rule is one line of the catalogue.
type Rule struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Compare  string   `json:"compare,omitempty"`
	Info     float64  `json:"info,omitempty"`
	Warning  float64  `json:"warning,omitempty"`
	Critical float64  `json:"critical,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"`
}

// Evidence is one number or word that a finding rests on.
type Evidence struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Unit  string `json:"unit,omitempty"`
}

// A Finding is something an operator may want to change. Subject is guest/101,
// node/pve1, node/pve1/sda (a disk), storage/pve1/local (a storage, or a pool of
// the node), stack/101/media, job/backup-1 (a backup job) or cluster; in an answer
// over several clusters the cluster's name stands before it. Threshold says the
// limit that was passed and where it comes from.
type Finding struct {
	Code      string     `json:"code"`
	Severity  Severity   `json:"severity"`
	Subject   string     `json:"subject"`
	Message   string     `json:"message"`
	Evidence  []Evidence `json:"evidence"`
	Threshold string     `json:"threshold,omitempty"`
	Fix       string     `json:"fix,omitempty"`
}

// A Limit overrides a rule's limits; nil keeps the rule's own.
type Limit struct{ Warning, Critical *float64 }

// A Judge makes findings: it holds values against limits, and leaves out what
// the profile ignores. The zero Judge uses the catalogue alone.
type Judge struct {
	Limits map[string]Limit // by code, from the profile
	Ignore []string         // CODE or CODE:last segment of the subject
}

// RuleOf returns the catalogue's line of a code. It panics on an unknown code,
// which is a programmer's mistake.
func RuleOf(code string) Rule {
	i, ok := slices.BinarySearchFunc(Catalogue, code, func(r Rule, c string) int { return cmp.Compare(r.Code, c) })
	if !ok {
		panic("report: no finding " + code)
	}
	return Catalogue[i]
}

// Find makes a finding without a limit, with the severity given or, when it is
// "", the rule's own. It is nil when the profile ignores it.
func (j Judge) Find(code string, severity Severity, subject, message string, evidence ...Evidence) *Finding {
	r := RuleOf(code)
	if severity == "" {
		severity = r.Severity
	}
	if j.ignored(code, subject) {
		return nil
	}
	if evidence == nil {
		evidence = []Evidence{}
	}
	return &Finding{Code: code, Severity: severity, Subject: subject, Message: message, Evidence: evidence, Fix: r.Fix}
}

// Measure makes a finding if value passes a limit of the rule, in the rule's
// unit. It is nil when value passes none, or the profile ignores it. The value
// becomes the first evidence under the name given.
func (j Judge) Measure(code, subject, message, name string, value float64, evidence ...Evidence) *Finding {
	r := RuleOf(code)
	for _, level := range j.levels(r) {
		if level.limit == 0 || !passes(r.Compare, value, level.limit) {
			continue
		}
		evidence = append([]Evidence{{Name: name, Value: Number(value), Unit: r.Unit}}, evidence...)
		f := j.Find(code, level.severity, subject, message, evidence...)
		if f != nil {
			f.Threshold = fmt.Sprintf("%s %s %s (%s)", r.Compare, Number(level.limit), r.Unit, level.from)
		}
		return f
	}
	return nil
}

// A level is a limit, what passing it means, and where it comes from.
type level struct {
	severity Severity
	limit    float64
	from     string
}

// levels are a rule's limits, the worst first, with the profile's in their place.
func (j Judge) levels(r Rule) []level {
	out := []level{{Critical, r.Critical, "default"}, {Warning, r.Warning, "default"}, {Info, r.Info, "default"}}
	for i, own := range []*float64{j.Limits[r.Code].Critical, j.Limits[r.Code].Warning} {
		if own != nil {
			out[i].limit, out[i].from = *own, "profile"
		}
	}
	return out
}

func passes(compare string, value, limit float64) bool {
	switch compare {
	case ">":
		return value > limit
	case ">=":
		return value >= limit
	case "<=":
		return value <= limit
	}
	return false
}

func (j Judge) ignored(code, subject string) bool {
	last := subject[strings.LastIndexByte(subject, '/')+1:]
	return slices.Contains(j.Ignore, code) || slices.Contains(j.Ignore, code+":"+last)
}

// Number renders a value with at most two decimals.
func Number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Findings collects the findings that are not nil, each once, the worst first.
func Findings(all ...*Finding) []Finding {
	out := []Finding{}
	for _, f := range all {
		if f != nil {
			out = append(out, *f)
		}
	}
	SortFindings(out)
	return slices.CompactFunc(out, func(a, b Finding) bool {
		return a.Code == b.Code && a.Subject == b.Subject && a.Message == b.Message
	})
}

// SortFindings orders findings by severity, subject, code and message.
func SortFindings(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
}
