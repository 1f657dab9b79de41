package transport

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"

	"pvelens/allowlist"
)

// run runs c on this connection. The first commands run beside the probe of the
// login shell, and wait for its answer, not for a round trip of its own.
func (cn *conn) run(ctx context.Context, h *Host, c allowlist.Command) (Result, error) {
	if !cn.usable() {
		return Result{}, lost(errors.Join(errNotSent, errSilent))
	}
	cn.shell.once.Do(func() { go cn.probe(h) })
	res, err := cn.exec(ctx, h, c)
	if err != nil {
		switch e, ok := cn.shell.verdict(); {
		case ok && e != nil && ctx.Err() == nil:
			err = e // the shell is the cause
		case !ok && cn.shell.began.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = slowShell(h)
		}
		return res, err
	}
	select {
	case <-cn.shell.known:
	case <-ctx.Done():
		return Result{}, ended(ctx, "learning what the login shell prints")
	}
	if cn.shell.err != nil {
		return Result{}, cn.shell.err
	}
	return cn.shell.strip(res)
}

// repeatable reports whether a command whose connection was lost may be sent
// again: those that reach into a guest or out to the network are not.
func repeatable(err error, c allowlist.Command) bool {
	if !errors.Is(err, errLost) {
		return false
	}
	e := c.Form().Effect
	return e == allowlist.None || e == allowlist.Cache || errors.Is(err, errNotSent)
}

var errNotSent = errors.New("nothing was sent")

// exec runs c in a session of its own and bounds it by ctx and by the form's
// limit, which the node keeps too.
func (cn *conn) exec(ctx context.Context, h *Host, c allowlist.Command) (Result, error) {
	f := c.Form()
	limit := f.Timeout() + 2*time.Second + cn.pool.time.grace
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := cn.takeSlot(ctx); err != nil {
		return Result{}, err
	}
	s := &session{conn: cn, out: limited{most: f.Cap, full: make(chan struct{})}, errs: limited{most: maxStderr}, done: make(chan error, 1), gone: make(chan struct{}), ended: make(chan struct{})}
	go s.work(c.Wire(h.Become), h.Become == allowlist.ViaGate)
	select {
	case err := <-s.done:
		return s.result(err)
	case <-s.out.full:
		s.abandon(f.Timeout() + cn.pool.time.orphan)
		return Result{Stdout: s.out.bytes(), Stderr: s.errs.bytes(), Exit: -1, Truncated: true}, nil
	case <-ctx.Done():
		s.abandon(f.Timeout() + cn.pool.time.orphan)
		cn.doubt()
		return Result{}, ended(ctx, "running "+c.ID())
	}
}

// takeSlot waits for one of the connection's sessions.
func (cn *conn) takeSlot(ctx context.Context) error {
	select {
	case cn.slots <- struct{}{}:
		return nil
	case <-cn.closed:
		return lost(errNotSent)
	case <-ctx.Done():
		return ended(ctx, "waiting for a free session")
	}
}

// result reads how a session ended.
func (s *session) result(err error) (Result, error) {
	res := Result{Stdout: s.out.bytes(), Stderr: s.errs.bytes(), Truncated: s.out.over()}
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	var own *Error
	switch {
	case err == nil:
		return res, nil
	case errors.As(err, &exit):
		res.Exit, res.Signal = exit.ExitStatus(), exit.Signal()
		return res, nil
	case errors.As(err, &own):
		return Result{}, own
	case s.conn.ended():
		return Result{}, lost(err)
	case errors.As(err, &missing):
		return Result{}, &Error{
			Code: Unsupported, Message: "the node ended a command without an exit status",
			Hint: "a forced command or a limited SSH server stands there; look at sshd's log on the node", Err: err,
		}
	}
	return Result{}, lost(err)
}

// ended reports whether the connection is over; its end may be a moment behind
// the end of its sessions.
func (cn *conn) ended() bool {
	select {
	case <-cn.closed:
		return true
	case <-time.After(10 * time.Millisecond):
		return false
	}
}
