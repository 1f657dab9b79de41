package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pvelens/tools/report"
)

// audited is an audit of the findings given, complete or not.
func audited(complete bool, findings ...report.Finding) *report.Audit {
	a := report.Group(findings, report.AuditFilter{}, map[string]string{"guest/1": "a|b\n`c`"}, nil)
	a.Profile, a.CollectedAt, a.Complete = `home"lab`, "2026-11-29T16:55:00Z", complete
	a.Say(complete, 0)
	return a
}

func found(code string, s report.Severity, subject, message string) report.Finding {
	return report.Finding{Code: code, Severity: s, Subject: subject, Message: message, Evidence: []report.Evidence{{Name: "x", Value: "1|2"}}}
}

func TestNagiosStatus(t *testing.T) {
	critical, warning, info := found("NODE_OFFLINE", report.Critical, "node/a", "off"), found("NODE_SWAP_USED", report.Warning, "node/a", "swap"), found("GUEST_AGENT_OFF", report.Info, "guest/1", "no agent")
	for _, tt := range []struct {
		name     string
		complete bool
		in       []report.Finding
		want     int
		word     string
	}{
		{"nothing", true, nil, 0, "OK"},
		{"info only", true, []report.Finding{info}, 0, "OK"},
		{"a warning", true, []report.Finding{info, warning}, 1, "WARNING"},
		{"a critical one", true, []report.Finding{warning, critical}, 2, "CRITICAL"},
		{"nothing, but incomplete", false, nil, 1, "WARNING"},
		{"critical and incomplete", false, []report.Finding{critical}, 2, "CRITICAL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			a := &app{stdio: stdio{out: &out, err: &bytes.Buffer{}}}
			if err := a.export(audited(tt.complete, tt.in...), "nagios"); err != nil {
				t.Fatal(err)
			}
			if a.code != tt.want || !strings.HasPrefix(out.String(), "PVELENS "+tt.word+" - ") {
				t.Errorf("got exit %d and %q, want %d and %s", a.code, firstLine(out.String()), tt.want, tt.word)
			}
			if n := strings.Count(out.String(), "|"); n != 1 {
				t.Errorf("got %d bars, want the one before the performance data:\n%s", n, out.String())
			}
		})
	}
}

func TestNagiosFailures(t *testing.T) {
	for _, args := range [][]string{{"config-audit", "--format", "nagios"}, {"config-audit", "--format=nagios", "x"}} {
		if !wantsNagios(args) {
			t.Errorf("%v is not taken for a monitoring program's call", args)
		}
	}
	if wantsNagios([]string{"config-audit", "--format"}) || wantsNagios([]string{"x", "--", "--format=nagios"}) {
		t.Error("another call is taken for a monitoring program's")
	}
	var out bytes.Buffer
	a := &app{stdio: stdio{out: &out, err: &bytes.Buffer{}}}
	if code := a.unknown(errors.New("a|b\nc")); code != 3 || strings.ContainsAny(strings.TrimSpace(out.String()), "|\n") {
		t.Errorf("got exit %d and %q, want 3 and one line without a bar", code, out.String())
	}
}

// A series stands once, whatever the messages say, and labels are escaped.
func TestPrometheusSeries(t *testing.T) {
	var out bytes.Buffer
	a := audited(true, found("TASK_FAILED", report.Warning, "guest/1", "one"), found("TASK_FAILED", report.Warning, "guest/1", "two"))
	if err := prometheus(nil, &out, a); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series := line[:strings.LastIndexByte(line, ' ')]
		if seen[series] {
			t.Errorf("series %s stands twice", series)
		}
		seen[series] = true
	}
	if want := `pvelens_finding{profile="home\"lab",code="TASK_FAILED",severity="warning",subject="guest/1"} 2`; !strings.Contains(out.String(), want) {
		t.Errorf("want %s in\n%s", want, out.String())
	}
}

func TestSARIF(t *testing.T) {
	var out bytes.Buffer
	if err := sarif(nil, &out, audited(false, found("NODE_OFFLINE", report.Critical, "my cluster/node/a", "off"), found("GUEST_AGENT_OFF", report.Info, "guest/1", "no agent"))); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	r := log.Runs[0]
	if log.Version != "2.1.0" || len(r.Results) != 2 || r.Invocations[0].Successful {
		t.Errorf("got version %s, %d results, successful %v", log.Version, len(r.Results), r.Invocations[0].Successful)
	}
	for _, x := range r.Results {
		if r.Tool.Driver.Rules[x.RuleIndex].ID != x.RuleID {
			t.Errorf("result %s points at rule %s", x.RuleID, r.Tool.Driver.Rules[x.RuleIndex].ID)
		}
		if uri := x.Locations[0].Physical.Artifact.URI; strings.ContainsAny(uri, " :\"") {
			t.Errorf("%q is no relative address", uri)
		}
	}
	if r.Results[0].Level != "error" || r.Results[1].Level != "note" {
		t.Errorf("got levels %s, %s", r.Results[0].Level, r.Results[1].Level)
	}
}

// A guest's name must not break the table or become a link or a heading.
func TestMarkdownEscapes(t *testing.T) {
	var out bytes.Buffer
	if err := markdown(nil, &out, audited(true, found("GUEST_AGENT_OFF", report.Info, "guest/1", "[x](http://y) | <b>\n# h"))); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| info") {
			if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 7 {
				t.Errorf("got %d bars in %q, want 7", n, line)
			}
		}
	}
	for _, bad := range []string{"[x](", "<b>", "\n# h"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("%q came through", bad)
		}
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
