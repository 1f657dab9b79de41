package tools

import (
	"fmt"
	"strings"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// An agentAnswer is what a VM's agent said to one question.
type agentAnswer struct {
	at      time.Time
	out     output
	trouble parse.AgentTrouble
}

// askAgent puts a question to the agent of a VM that may be asked, and says what
// trouble the agent had. A question that was answered less than agentRest ago is
// answered from memory; where the agent's turn is not now, it is not waited for.
func (s *Session) askAgent(e *entry, vmid int, form string, values ...string) (output, parse.AgentTrouble, error) {
	if a, ok := e.recall(form, values); ok {
		return a.out, a.trouble, nil
	}
	e.mu.Lock()
	busy := e.busyTill[fmt.Sprintf("agent/%d", vmid)].After(time.Now())
	e.mu.Unlock()
	if busy {
		return output{}, parse.AgentOther, errorf(report.Timeout, "the agent of VM %d was asked a moment ago, or did not answer; it is left alone for a while", vmid).hint("ask again in a few seconds")
	}
	return s.waitAgent(e, vmid, form, values...)
}

// waitAgent is askAgent for questions that are worth waiting for: where the
// agent's turn comes before the deadline, it is waited for.
func (s *Session) waitAgent(e *entry, vmid int, form string, values ...string) (output, parse.AgentTrouble, error) {
	if a, ok := e.recall(form, values); ok {
		return a.out, a.trouble, nil
	}
	if err := s.agentTurn(e, vmid); err != nil {
		return output{}, parse.AgentOther, err
	}
	out, err := s.exec(s.ctx, e, form, values...)
	if err != nil {
		if AsError(err).Code == report.Timeout {
			e.agentSilent(vmid)
			return out, parse.AgentTimedOut, err
		}
		return out, parse.AgentOther, err
	}
	trouble := parse.GuestAgentError(out.Exit, out.Stderr)
	if trouble == parse.AgentTimedOut {
		e.agentSilent(vmid)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard == nil {
		e.heard = map[string]agentAnswer{}
	}
	e.heard[question(form, values)] = agentAnswer{time.Now(), out, trouble}
	return out, trouble, nil
}

// recall returns what an agent answered to a question less than agentRest ago.
func (e *entry) recall(form string, values []string) (agentAnswer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, ok := e.heard[question(form, values)]
	return a, ok && time.Since(a.at) < agentRest
}

func question(form string, values []string) string { return form + " " + strings.Join(values, " ") }
