package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pvelens/profiles"
	"pvelens/tools/report"
)

// CheckProfile refuses a profile whose thresholds or ignore rules name findings
// that do not exist, or give limits to findings that have none.
func CheckProfile(p *profiles.Profile) error {
	find := func(code string) *report.Rule {
		for i := range report.Catalogue {
			if report.Catalogue[i].Code == code {
				return &report.Catalogue[i]
			}
		}
		return nil
	}
	bad := func(format string, args ...any) error {
		return &profiles.Error{Code: "CONFIG", Message: fmt.Sprintf("profile %s: ", p.Name) + fmt.Sprintf(format, args...), Hint: "tools/FINDINGS.md lists the codes and their limits"}
	}
	for _, rule := range p.Ignore {
		if code, _, _ := strings.Cut(rule, ":"); find(code) == nil {
			return bad("ignore: there is no finding %s", code)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(p.Thresholds)) {
		r := find(code)
		if r == nil {
			return bad("thresholds: there is no finding %s", code)
		}
		if r.Compare == "" {
			return bad("thresholds: %s has no limits", code)
		}
	}
	return nil
}

// judge holds the profile's thresholds and ignore rules.
func (f *fleet) judge() report.Judge {
	j := report.Judge{Limits: map[string]report.Limit{}, Ignore: f.Profile.Ignore}
	for code, l := range f.Profile.Thresholds {
		j.Limits[code] = report.Limit{Warning: l.Warning, Critical: l.Critical}
	}
	return j
}
