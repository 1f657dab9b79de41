package tools

import (
	"context"
	"fmt"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// How long a VM's agent is left alone by this process: after any question, and
// after one that it did not answer in time, when the program may still run.
var (
	agentRest    = 10 * time.Second
	agentBackoff = 5 * time.Minute
)

// agentTurn waits until the agent of a VM may be asked, and takes the turn. It
// fails at once when the turn does not come before the call's deadline.
func (s *Session) agentTurn(e *entry, vmid int) error {
	key := fmt.Sprintf("agent/%d", vmid)
	e.mu.Lock()
	now := time.Now()
	turn := e.busyTill[key]
	if turn.Before(now) {
		turn = now
	}
	wait := turn.Sub(now)
	if deadline, ok := s.ctx.Deadline(); ok && wait > 0 && turn.Add(agentLeast).After(deadline) {
		e.mu.Unlock()
		after := int(wait.Round(time.Second) / time.Second)
		return (&Error{Code: report.Timeout, Node: e.name(), Message: fmt.Sprintf("the agent of VM %d was asked a moment ago; it is asked at most once in %s, and not for %s after it did not answer", vmid, plainSeconds(agentRest), plainSeconds(agentBackoff))}).
			hint("ask again in %d s", max(after, 1))
	}
	if e.busyTill == nil {
		e.busyTill = map[string]time.Time{}
	}
	e.busyTill[key] = turn.Add(agentRest)
	e.mu.Unlock()
	return sleep(s.ctx, wait)
}

func plainSeconds(d time.Duration) string { return report.Seconds(report.Ptr(int64(d.Seconds()))) }

// agentLeast is what one question to an agent takes at least: a program that
// starts on the node, and a poll after a second.
const agentLeast = 2 * time.Second

// agentSilent leaves the agent alone for long: it did not answer in time.
func (e *entry) agentSilent(vmid int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busyTill == nil {
		e.busyTill = map[string]time.Time{}
	}
	e.busyTill[fmt.Sprintf("agent/%d", vmid)] = time.Now().Add(agentBackoff)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// agentAllowed says why the agent of a running VM must not be asked, or "":
// it is off, or the VM is locked.
func agentAllowed(cfg *parse.GuestConfig) (status, reason string) {
	switch {
	case cfg == nil:
		return report.PlaceUnknown, "its configuration could not be read"
	case cfg.Current.Lock != "":
		return report.PlaceLocked, "the VM is locked (" + report.Clean(cfg.Current.Lock) + "); its agent is not asked meanwhile"
	case cfg.Current.Agent == nil || !cfg.Current.Agent.Enabled:
		return report.PlaceAgentOff, "the guest agent is not enabled in its configuration"
	}
	return "", ""
}
