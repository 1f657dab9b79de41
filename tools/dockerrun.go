package tools

import (
	"errors"
	"strings"

	"pvelens/allowlist"
	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// runtimeOutput is what docker or podman printed and how it ended, wherever it
// ran.
type runtimeOutput struct {
	Exit           int
	Stdout, Stderr []byte
	form           allowlist.Form
}

// run runs one form of a program where the place is: lxc-docker-ps,
// qemu-podman-inspect, host-docker-client. An error means that there is no exit
// status of the program itself.
func (s *Session) run(p *dockerPlace, program, verb string, ids ...string) (runtimeOutput, error) {
	form := program + "-" + verb
	if p.guest == nil {
		out, err := s.exec(s.ctx, p.entry, "host-"+form, ids...)
		return direct(out, err)
	}
	values := append([]string{p.vmid()}, ids...)
	if p.guest.Type == "lxc" {
		out, err := s.exec(s.ctx, p.entry, "lxc-"+form, values...)
		return direct(out, err)
	}
	return s.runInVM(p, "qemu-"+form, values)
}

// direct refuses what a gate, sudo or a missing pct said: it is no word of the
// runtime.
func direct(out output, err error) (runtimeOutput, error) {
	r := runtimeOutput{out.Exit, out.Stdout, out.Stderr, out.Form}
	if err != nil {
		return r, err
	}
	stderr := strings.ToLower(string(out.Stderr))
	outer := out.Form.Argv[0]
	if strings.HasPrefix(outer, "/") && (strings.Contains(stderr, "failed to run command") && strings.Contains(stderr, outer) || strings.Contains(stderr, "please run as root")) ||
		strings.Contains(stderr, "pvelens-gate") || strings.Contains(stderr, "sudo: ") && !strings.Contains(stderr, "command not found") {
		if bad := failure(out); bad != nil {
			return r, bad
		}
	}
	return r, nil
}

// failureOf is the error of an exit that no rule explains.
func failureOf(r runtimeOutput) error {
	if bad := failure(output{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.Exit, Form: r.form}); bad != nil {
		return withoutText(bad, r)
	}
	return errorf(report.Internal, "%s ended with exit %d", r.form.ID, r.Exit)
}

// withoutText drops what a runtime printed: it may quote a container's command.
func withoutText(e *Error, r runtimeOutput) *Error {
	if e.Code == report.Internal {
		return errorf(report.Internal, "%s ended with exit %d", r.form.ID, r.Exit)
	}
	return e
}

// agentError is why a VM's agent gave no answer, and the status of its place.
type agentError struct {
	err    *Error
	status string
}

// Error is the text of the error inside.
func (e *agentError) Error() string { return e.err.Error() }

// Unwrap lets AsError find the error inside.
func (e *agentError) Unwrap() error { return e.err }

// runInVM runs a form through the agent, when its turn comes; what it answered
// less than agentRest ago is not asked again.
func (s *Session) runInVM(p *dockerPlace, form string, values []string) (runtimeOutput, error) {
	out, trouble, err := s.waitAgent(p.entry, p.guest.VMID, form, values...)
	if err != nil {
		return runtimeOutput{}, err
	}
	if trouble == parse.AgentNoProgram {
		return runtimeOutput{Exit: 127, form: out.Form}, nil
	}
	if trouble != parse.AgentOK {
		return runtimeOutput{}, s.agentTrouble(p, trouble, out)
	}
	got, err := parse.QemuGuestExec(out.Stdout)
	switch {
	case errors.Is(err, parse.ErrGuestExecTimeout):
		return runtimeOutput{}, s.agentTrouble(p, parse.AgentTimedOut, out)
	case err != nil:
		return runtimeOutput{}, unread(form, err)
	}
	return runtimeOutput{got.Exit, got.Stdout, got.Stderr, out.Form}, nil
}

func (s *Session) agentTrouble(p *dockerPlace, t parse.AgentTrouble, out output) error {
	vmid := p.guest.VMID
	as := func(status string, code report.Code, format string, args ...any) *agentError {
		return &agentError{errorf(code, "VM %d: "+format, append([]any{vmid}, args...)...), status}
	}
	switch t {
	case parse.AgentTimedOut:
		p.entry.agentSilent(vmid)
		return as(report.PlaceTimeout, report.Timeout, "the program did not end within 10 s in the guest; the agent is left alone for %s", plainSeconds(agentBackoff))
	case parse.AgentSilent:
		return as(report.PlaceAgentOff, report.Unsupported, "the guest agent is enabled, but does not answer")
	case parse.AgentOff:
		return as(report.PlaceAgentOff, report.Unsupported, "the running VM has no guest agent; it needs a restart after the agent was enabled")
	case parse.AgentVMStopped:
		return as(report.PlaceGuestStopped, report.NotFound, "it does not run")
	case parse.AgentVMMissing:
		return as(report.PlaceUnknown, report.NotFound, "it is not on the node that was asked; it may just have moved")
	case parse.AgentBlocked:
		return as(report.PlaceUnknown, report.Unsupported, "the guest forbids guest-exec").hinted("allow guest-exec in the guest's qemu-ga configuration, or name the VM in docker_hosts")
	case parse.AgentUnsupported:
		return as(report.PlaceUnknown, report.Unsupported, "its agent does not know guest-exec")
	case parse.AgentFrozen:
		return as(report.PlaceLocked, report.Unsupported, "its filesystems are frozen, a backup is being made")
	}
	if bad := failure(out); bad != nil {
		return bad
	}
	return as(report.PlaceUnknown, report.Internal, "the agent gave no answer that can be read")
}

func (e *agentError) hinted(h string) *agentError {
	e.err.Hint = h
	return e
}
