package tools

import (
	"strings"
	"testing"

	"pvelens/fixtures"
	"pvelens/tools/report"
)

// The same question is answered from memory for a while, and an agent that did
// not answer in time is left alone, across calls.
func TestTheAgentIsAskedOnce(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	for range 3 {
		r := answer[*report.GuestStatus](t, env, "get_guest_status", `{"guest":200}`)
		if r.DiskUsedBytes == nil || *r.DiskUsedBytes != 9120331776 || r.AgentState != "answers" {
			t.Fatalf("got %v, %s", r.DiskUsedBytes, r.AgentState)
		}
	}
	if n := forms(t, env)["qemu-filesystems"]; n != 1 {
		t.Errorf("the agent was asked %d times", n)
	}
}

func TestAnAgentThatTimedOutIsLeftAlone(t *testing.T) {
	sc := rewritten(t, func(s string) string { return s }, map[string]fixtures.Answer{"qemu-filesystems+pve1+200": {Exit: 124}})
	env := replay(t, sc, fixtures.Options{})
	for range 2 {
		r := answer[*report.GuestStatus](t, env, "get_guest_status", `{"guest":200}`)
		if r.DiskUsedBytes != nil || r.Complete || len(r.Problems) == 0 || r.Status != "running" {
			t.Errorf("got %+v", r)
		}
	}
	if n := forms(t, env)["qemu-filesystems"]; n != 1 {
		t.Errorf("the agent was asked %d times, want once", n)
	}
}

// A held socket delays the freeze of a backup, so a locked VM is not asked.
func TestTheAgentOfALockedVMIsNotAsked(t *testing.T) {
	config := string(fixtures.Ask(fixtures.HeimlaborPVE1(), "guest-configs").Stdout)
	const name = "/etc/pve/nodes/pve1/qemu-server/200.conf:name: haos\n"
	if !strings.Contains(config, name) {
		t.Fatal("the recording has changed")
	}
	config = strings.Replace(config, name, name+"/etc/pve/nodes/pve1/qemu-server/200.conf:lock: backup\n", 1)
	sc := rewritten(t, func(s string) string { return s }, map[string]fixtures.Answer{"guest-configs": printed(config)})
	env := replay(t, sc, fixtures.Options{})
	h := answer[*report.GuestHealth](t, env, "guest_health_summary", `{"guest":200}`)
	if n := forms(t, env)["qemu-filesystems"]; n != 0 {
		t.Errorf("a locked VM's agent was asked %d times", n)
	}
	for _, c := range h.Checks {
		if (c.Check == "disk" || c.Check == "agent") && c.Result != report.Unknown {
			t.Errorf("%s is %s, want unknown", c.Check, c.Result)
		}
	}
}
