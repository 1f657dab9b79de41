package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pvelens/allowlist"
)

const probeAnswer = "pvelens-probe\n"

// A shell is what the probe learned about the login shell of a connection: the
// text that it prints before a command's output, or why it runs none.
type shell struct {
	once   sync.Once
	began  atomic.Bool   // the server has taken a command
	known  chan struct{} // closed after prefix and err are set
	prefix []byte
	err    error
}

// verdict returns the probe's error, if the probe is over.
func (s *shell) verdict() (error, bool) {
	select {
	case <-s.known:
		return s.err, true
	default:
		return nil, false
	}
}

// probe runs the probe form. A connection whose shell runs nothing is closed, so
// that a mended shell is seen at the next call.
func (cn *conn) probe(h *Host) {
	cn.shell.prefix, cn.shell.err = cn.learn(h)
	close(cn.shell.known)
	if cn.shell.err != nil {
		cn.retire()
	}
}

func (cn *conn) learn(h *Host) ([]byte, error) {
	c, err := allowlist.Check(h.Role, "/bin/echo", strings.TrimSpace(probeAnswer))
	if err != nil {
		return nil, &Error{Code: Internal, Message: "the table has no probe form", Err: err}
	}
	line := AuditLine{Event: "allowed", Node: h.Target.Name, Role: string(h.Role), Form: c.ID()}
	if err := cn.pool.opt.Audit.append(line); err != nil {
		return nil, auditError("", err)
	}
	start := time.Now()
	res, err := cn.exec(context.Background(), h, c)
	res.Elapsed = time.Since(start)
	line.Event = "done"
	line.setResult(res, err)
	if aerr := cn.pool.opt.Audit.append(line); aerr != nil {
		return nil, auditError("", aerr)
	}
	if err != nil {
		return nil, err
	}
	prefix, ok := bytes.CutSuffix(res.Stdout, []byte(probeAnswer))
	if ok && res.Exit == 0 {
		return prefix, nil
	}
	return nil, mute(h, res)
}

// ErrSlowShell is the cause of an Error when a node let us in and its login
// shell had not run the first command when the deadline came.
var ErrSlowShell = errors.New("the login shell runs nothing")

func slowShell(h *Host) *Error {
	return &Error{
		Code: Timeout, Message: "logged in, but the login shell ran no command in time",
		Hint: "what do .bashrc and the like wait for, or is the node overloaded? try it: ssh " + h.Target.Name + " /bin/echo pvelens-probe", Err: errors.Join(ErrSlowShell, context.DeadlineExceeded),
	}
}

// mute explains a login shell that does not run the probe.
func mute(h *Host, res Result) *Error {
	text := append(bytes.TrimSpace(res.Stdout), ' ')
	text = append(text, bytes.TrimSpace(res.Stderr)...)
	e := &Error{
		Code:    Unsupported,
		Message: fmt.Sprintf("the login shell does not run commands: exit %d, it said %s", res.Exit, said(text)),
		Hint:    "try it: ssh " + h.Target.Name + " /bin/echo pvelens-probe; look for exit or exec in .bashrc and the like, for command= before the key in authorized_keys, and for ForceCommand in sshd_config",
	}
	switch has := func(s string) bool { return bytes.Contains(text, []byte(s)) }; {
	case res.Truncated:
		e.Message = "the login shell prints without end"
		e.Hint = "look at .bashrc, .zshenv, config.fish or .cshrc of this user"
	case has("restricted"):
		e.Message = "restricted login shell: it refuses commands with a slash; it said " + said(text)
		e.Hint = "give " + h.Target.User + " a normal shell on the node, such as /bin/sh"
	case has("not available"), has("nologin"), has("sftp connections only"):
		e.Code = PermissionDenied
		e.Message = "this account may not run commands: it said " + said(text)
		e.Hint = "give " + h.Target.User + " a login shell on the node, or set another ssh_user"
	case res.Exit == 127:
		e.Hint = "the node lacks /usr/bin/timeout or /bin/echo (coreutils or busybox)"
	case res.Exit == 126 && h.Become != allowlist.ViaGate && has("pvelens-gate: "):
		e.Code = Config
		e.Message = "a gate stands on the node for this key, but the profile does not use it: it said " + said(text)
		e.Hint = "set become = \"gate\" in the profile"
	case res.Exit == 126 && h.Become == allowlist.ViaGate:
		e.Message = "the gate refused the probe: it said " + said(text)
		e.Hint = "the gate on the node is another version than this program; install it again: pvelens gate install-script"
	case bytes.Contains(res.Stdout, []byte(probeAnswer)):
		e.Message = "the login shell prints text after a command's output (" + said(text) + ")"
		e.Hint = "look at .bash_logout or at a trap in .bashrc of this user"
	}
	return e
}

// strip removes the text of the login shell from res.
func (s *shell) strip(res Result) (Result, error) {
	if len(s.prefix) == 0 {
		return res, nil
	}
	rest, ok := bytes.CutPrefix(res.Stdout, s.prefix)
	if !ok {
		return Result{}, &Error{
			Code: Unsupported, Message: "login shell prints text before command output, each time another (.bashrc?)",
			Hint: "let it print only on a terminal: put `[ -t 1 ] || return` at the top of .bashrc (fish: `status is-interactive`, tcsh: `if (! $?prompt) exit`)",
		}
	}
	res.Stdout, res.Noise = rest, true
	return res, nil
}
