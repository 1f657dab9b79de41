// Package transport takes a permitted command to a node over SSH and brings its
// output back.
//
// It runs nothing but an [allowlist.Command], on one pooled connection a node,
// and writes a line of the audit log before and after each. Host keys are always
// checked; there is no switch. The promise would break if anything here took a
// string to run, or returned a connection.
package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"pvelens/allowlist"
)

// Options configure a Pool.
type Options struct {
	// Audit is required: nothing runs without it.
	Audit *Audit
	// Now is the clock of the back-off; nil is time.Now.
	Now func() time.Time
	// Log receives what a person debugging may want; nil is silence.
	Log *slog.Logger
	// Getenv gives HOME, SHELL and SSH_AUTH_SOCK; nil is os.Getenv.
	Getenv func(string) string
}

// A Result is a command that ended. Stdout holds no shell noise.
type Result struct {
	Stdout    []byte
	Stderr    []byte        // at most 64 KiB of it
	Exit      int           // exit status; 128+n after signal n; -1 when Truncated
	Signal    string        // such as "KILL", or ""
	Truncated bool          // stdout went over the form's cap and was cut there
	Elapsed   time.Duration // with the time to connect
	Noise     bool          // the login shell printed text first; it was removed
}

// A Pool holds at most one connection a destination. Its methods may be called
// from several goroutines.
type Pool struct {
	opt    Options
	time   timing
	dials  chan struct{} // a token for each dial in flight
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // dials under way

	mu    sync.Mutex
	nodes map[string]*node
	doors map[string]chan struct{} // of an address: a token for each dial in flight
}

// The limits that protect sshd's MaxSessions and MaxStartups.
const (
	maxSessions  = 4
	maxDials     = 32
	maxDoorDials = 4 // to one address, and through one bastion
)

// New returns an empty Pool; nothing is dialled before the first Run.
func New(o Options) *Pool {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Pool{
		opt: o, time: defaultTiming, dials: make(chan struct{}, maxDials),
		ctx: ctx, cancel: cancel, nodes: map[string]*node{}, doors: map[string]chan struct{}{},
	}
}

// Run runs c on h and returns when it has ended. A bad exit status is a Result
// without an error; the caller asks the form whether it is good. An error is
// always an *Error, and means that there is no exit status.
func (p *Pool) Run(ctx context.Context, h *Host, c allowlist.Command) (Result, error) {
	line := AuditLine{Event: "allowed", Node: h.Target.Name, Role: string(h.Role), Form: c.ID()}
	if err := admit(h, c); err != nil {
		line.Event, line.Class = "refused", "internal"
		return Result{}, p.recorded(line, err)
	}
	if p.opt.Audit == nil {
		return Result{}, asError(h.Target.Name, fmt.Errorf("a pool without an audit log runs nothing"))
	}
	if err := p.opt.Audit.append(line); err != nil {
		return Result{}, auditError(h.Target.Name, err)
	}
	start := time.Now()
	res, err := p.run(ctx, h, c)
	res.Elapsed = time.Since(start)
	line.Event = "done"
	line.setResult(res, err)
	if aerr := p.opt.Audit.append(line); aerr != nil {
		p.opt.Log.Warn("audit log cannot be written; nothing more will run", "error", aerr)
	}
	if err != nil {
		return Result{}, asError(h.Target.Name, err)
	}
	return res, nil
}

// admit refuses what must not open a connection.
func admit(h *Host, c allowlist.Command) error {
	f := c.Form()
	switch {
	case c.IsZero():
		return &Error{Code: Internal, Message: "a zero Command is never sent"}
	case f.Role != allowlist.Both && h.Role != f.Role:
		return &Error{Code: Internal, Message: fmt.Sprintf("form %s is for hosts of role %s, this is %s", f.ID, f.Role, h.Role)}
	}
	return nil
}

// run sends c, and once more when the connection was lost under it.
func (p *Pool) run(ctx context.Context, h *Host, c allowlist.Command) (Result, error) {
	r, err := newRoute(h)
	if err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return Result{}, ended(ctx, "nothing was sent")
	}
	n := p.node(r)
	for try := 0; ; try++ {
		cn, err := n.connect(ctx)
		if err != nil {
			return Result{}, err
		}
		res, err := cn.run(ctx, h, c)
		if errors.Is(err, errLost) {
			cn.retire() // the next one dials, even if this end is not seen yet
		}
		cn.release()
		if err != nil && p.ctx.Err() != nil {
			return Result{}, closedError()
		}
		if err == nil || try > 0 || !repeatable(err, c) || ctx.Err() != nil {
			return res, err
		}
		p.opt.Log.Debug("connection lost, dialling again", "node", h.Target.Name)
	}
}

// Refused writes the audit line of a refusal, and returns it as an *Error.
func (p *Pool) Refused(h *Host, r *allowlist.Refusal) error {
	line := AuditLine{
		Event: "refused", Node: h.Target.Name, Role: string(h.Role), Form: r.Form,
		Class: string(r.Class), Slot: r.Slot, Length: r.Len, Byte: r.Byte,
	}
	return p.recorded(line, &Error{Code: Refused, Message: r.Error(), Hint: "`pvelens allowlist` prints what can be run", Err: r})
}

func (p *Pool) recorded(line AuditLine, err error) error {
	if p.opt.Audit != nil {
		if aerr := p.opt.Audit.append(line); aerr != nil {
			return auditError(line.Node, aerr)
		}
	}
	return asError(line.Node, err)
}

func (p *Pool) node(r *route) *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[r.key]
	if n == nil {
		n = &node{pool: p, route: r, dials: make(chan struct{}, maxDoorDials)}
		p.nodes[r.key] = n
	}
	return n
}

// Close ends all connections and dials, and waits for them. Commands that run
// return an error with code CANCELLED.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.cancel(errClosed)
	nodes := p.nodes
	p.nodes = map[string]*node{}
	p.mu.Unlock()
	p.work.Wait()
	for _, n := range nodes {
		n.close()
	}
	return nil
}
