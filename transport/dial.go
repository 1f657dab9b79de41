package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"pvelens/profiles"
)

var (
	errSlow   = errors.New("connect timeout")
	errIdle   = errors.New("unused for long")
	errSilent = errors.New("keepalive unanswered")
)

// A dialFailure marks an error as the node's own answer to a dial, which starts
// a pause.
type dialFailure struct {
	err       *Error
	penalised bool
}

func (f *dialFailure) Error() string { return f.err.Error() }
func (f *dialFailure) Unwrap() error { return f.err }

// asDialFailure returns err as an *Error, and in f whether it is the node's own.
func asDialFailure(err error, f **dialFailure) *Error {
	errors.As(err, f)
	return asError("", err)
}

// A patience ends a dial after the connect timeout; extend gives a person time
// to touch a key.
type patience struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	touch  time.Duration
}

func newPatience(ctx context.Context, limit, touch time.Duration) *patience {
	ctx, cancel := context.WithCancelCause(ctx)
	return &patience{ctx, cancel, time.AfterFunc(limit, func() { cancel(errSlow) }), touch}
}

func (p *patience) extend() {
	if p.timer.Stop() {
		p.timer.Reset(p.touch)
	}
}

func (p *patience) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// dial connects and logs in. It never holds one of the pool's dial tokens while
// it waits for a bastion, which may need one itself.
func (p *Pool) dial(ctx context.Context, r *route) (*conn, error) {
	if r.target.ControlPath != "" {
		return p.dialMaster(ctx, r)
	}
	if r.via == nil {
		door := p.door(r.address())
		if err := take(ctx, door, "waiting for a free dial to "+r.address()); err != nil {
			return nil, err
		}
		defer give(door)
		return p.dialDirect(ctx, r, nil)
	}
	for try := 0; ; try++ {
		c, again, err := p.dialBehind(ctx, r)
		if !again || try > 0 || ctx.Err() != nil {
			return c, err
		}
	}
}

// dialBehind dials through the bastion; again says that the bastion's connection
// was lost meanwhile.
func (p *Pool) dialBehind(ctx context.Context, r *route) (c *conn, again bool, err error) {
	n := p.node(r.via)
	bastion, err := n.connect(ctx)
	if err != nil {
		return nil, false, throughBastion(r.via, err)
	}
	if err = take(ctx, n.dials, "waiting for a free dial through "+r.via.target.Name); err == nil {
		c, err = p.dialDirect(ctx, r, bastion)
		give(n.dials)
	}
	if err == nil {
		return c, false, nil
	}
	if again = bastion.ended(); again {
		bastion.retire()
	}
	bastion.release()
	return nil, again, err
}

// door returns the dial tokens of one address: several destinations may be one
// sshd, which drops logins when too many come at once.
func (p *Pool) door(address string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.doors[address]
	if d == nil {
		d = make(chan struct{}, maxDoorDials)
		p.doors[address] = d
	}
	return d
}

func (p *Pool) dialDirect(ctx context.Context, r *route, bastion *conn) (*conn, error) {
	if err := take(ctx, p.dials, "waiting for a free dial"); err != nil {
		return nil, err
	}
	defer give(p.dials)
	wait := newPatience(ctx, r.timeout, p.time.touch)
	defer wait.end()
	nc, err := p.open(wait.ctx, r, bastion)
	if err != nil {
		return nil, openFailure(wait.ctx, r, err)
	}
	client, err := p.login(wait, r, nc)
	if err != nil {
		return nil, err
	}
	return newConn(p, r, client, bastion), nil
}

// open returns the byte stream to the node's sshd.
func (p *Pool) open(ctx context.Context, r *route, bastion *conn) (net.Conn, error) {
	t := r.target
	switch {
	case bastion != nil:
		return bastion.client.DialContext(ctx, "tcp", r.address())
	case t.ProxyCommand != "":
		return startProxy(p.opt.Getenv("SHELL"), t.ProxyCommand)
	}
	network := map[string]string{"inet": "tcp4", "inet6": "tcp6"}[t.AddressFamily]
	if network == "" {
		network = "tcp"
	}
	var d net.Dialer
	if t.BindAddress != "" {
		local, err := net.ResolveTCPAddr(network, net.JoinHostPort(t.BindAddress, "0"))
		if err != nil {
			return nil, badBind(t)
		}
		d.LocalAddr = local
	}
	return d.DialContext(ctx, network, r.address())
}

// openFailure says why no byte stream came about.
func openFailure(ctx context.Context, r *route, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) {
		return ended(ctx, "connecting to "+r.address())
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	where, prefix := r.address(), ""
	if r.via != nil {
		prefix = "via " + r.via.target.Name + ": "
	}
	if ctx.Err() != nil || isTimeout(err) {
		return &dialFailure{err: &Error{
			Code: Timeout, Message: fmt.Sprintf("%sno answer from %s within %s", prefix, where, seconds(r.timeout)),
			Hint: "is the node up, and the port open in the firewalls between? raise connect_timeout if it is far away", Err: err,
		}}
	}
	var family *net.AddrError
	switch {
	case r.target.BindAddress != "" && errors.Is(err, syscall.EADDRNOTAVAIL):
		return badBind(r.target)
	case errors.As(err, &family):
		return &Error{
			Code: Config, Message: fmt.Sprintf("%s has no address of the family that AddressFamily %s or BindAddress wants", r.target.HostName, cmp.Or(r.target.AddressFamily, "any")),
			Hint: "correct AddressFamily, BindAddress or HostName in ssh_config", Err: err,
		}
	}
	reason, hint := reasonOf(err)
	if refused := (*ssh.OpenChannelError)(nil); r.via != nil && errors.As(err, &refused) && refused.Reason != ssh.Prohibited {
		hint += fmt.Sprintf(" try it from there: ssh %s nc -vz %s %d", r.via.target.Name, r.target.HostName, r.target.Port)
	}
	return &dialFailure{err: &Error{Code: Unreachable, Message: fmt.Sprintf("%s%s: %s", prefix, where, reason), Hint: hint, Err: err}}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func badBind(t *profiles.Target) *Error {
	return &Error{
		Code: Config, Message: fmt.Sprintf("BindAddress %s: want an address of this machine", t.BindAddress),
		Hint: "correct or remove BindAddress in ssh_config; `ip address` lists what this machine has",
	}
}

// reasonOf names the reason of a failed dial without the addresses, which the
// message already has.
func reasonOf(err error) (reason, hint string) {
	var dns *net.DNSError
	var op *net.OpError
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		return "the bastion forbids forwarding: " + said([]byte(refused.Message)), "AllowTcpForwarding and PermitOpen on the bastion must allow it"
	case errors.As(err, &refused):
		return "the bastion says " + said([]byte(refused.Message)), "is the node up, and known to the bastion by this name?"
	case errors.As(err, &dns):
		return "no such host name", "correct HostName in ssh_config, or nodes in the profile"
	case errors.As(err, &op):
		return op.Err.Error(), "is the node up, and does sshd listen on this port?"
	}
	return err.Error(), "is the node up, and does sshd listen on this port?"
}

// throughBastion names the bastion in its error. It starts no pause for the node
// behind: the bastion has its own.
func throughBastion(via *route, err error) error {
	e := *asError("", err)
	e.Message = "via " + via.target.Name + ": " + e.Message
	return &e
}

func take(ctx context.Context, tokens chan struct{}, doing string) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx, doing)
	}
}

func give(tokens chan struct{}) { <-tokens }
