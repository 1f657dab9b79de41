package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"pvelens/tools/report"
)

type sarifText struct {
	Text string `json:"text"`
}

type sarifRule struct {
	ID               string          `json:"id"`
	ShortDescription sarifText       `json:"shortDescription"`
	Help             sarifText       `json:"help"`
	Default          sarifRuleConfig `json:"defaultConfiguration"`
}

type sarifRuleConfig struct {
	Level string `json:"level"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Name               string `json:"name,omitempty"`
	Kind               string `json:"kind"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
}

type sarifLocation struct {
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
	Properties   map[string]any    `json:"properties,omitempty"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	EndTime       string              `json:"endTimeUtc,omitempty"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

// sarif writes an audit as SARIF 2.1.0. A subject stands as a logical location
// and, for readers that want a file, as a relative address.
func sarif(_ *app, w io.Writer, r *report.Audit) error {
	var run sarifRun
	run.Tool.Driver = sarifDriver{Name: "pvelens", Version: version(), Rules: []sarifRule{}}
	run.Results = []sarifResult{}
	index := map[string]int{}
	for _, g := range r.Everything() {
		for _, f := range g.Findings {
			i, ok := index[f.Code]
			if !ok {
				i = len(run.Tool.Driver.Rules)
				index[f.Code] = i
				rule := report.RuleOf(f.Code)
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{f.Code, sarifText{rule.Why}, sarifText{rule.Fix}, sarifRuleConfig{sarifLevel(rule.Severity)}})
			}
			run.Results = append(run.Results, sarifFinding(f, g.Name, i))
		}
	}
	end := sarifInvocation{Successful: r.Complete, EndTime: r.CollectedAt}
	for _, p := range r.Problems {
		end.Notifications = append(end.Notifications, sarifNotification{"error", sarifText{string(p.Code) + ": " + strings.TrimPrefix(p.Node+": "+p.Message, ": ")}})
	}
	run.Invocations = []sarifInvocation{end}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func sarifLevel(s report.Severity) string {
	switch s {
	case report.Critical:
		return "error"
	case report.Warning:
		return "warning"
	}
	return "note"
}

func sarifFinding(f report.Finding, name string, rule int) sarifResult {
	text := f.Message
	var told []string
	for _, e := range f.Evidence {
		told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Name, e.Value, e.Unit)))
	}
	if len(told) > 0 {
		text += " (" + strings.Join(told, "; ") + ")"
	}
	out := sarifResult{
		RuleID: f.Code, RuleIndex: rule, Level: sarifLevel(f.Severity), Message: sarifText{text},
		Locations:    []sarifLocation{{sarifPhysical{sarifArtifact{uriPath(f.Subject)}}, []sarifLogical{{f.Subject, name, "resource"}}}},
		Fingerprints: map[string]string{"pvelens/v1": f.Code + " " + f.Subject},
	}
	if f.Threshold != "" {
		out.Properties = map[string]any{"threshold": f.Threshold}
	}
	return out
}

// uriPath escapes what may not stand in a relative address.
func uriPath(subject string) string {
	var b strings.Builder
	for i := range len(subject) {
		c := subject[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
