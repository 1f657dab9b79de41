package transport

import (
	"context"
	"net"

	"golang.org/x/crypto/ssh"
)

// dialMaster connects through the socket of an OpenSSH master, which has logged
// in and checked the host key. This is the way for a second factor: the person
// answers ssh, and pvelens never asks.
func (p *Pool) dialMaster(ctx context.Context, r *route) (*conn, error) {
	if err := take(ctx, p.dials, "waiting for a free dial"); err != nil {
		return nil, err
	}
	defer give(p.dials)
	wait := newPatience(ctx, r.timeout, p.time.touch)
	defer wait.end()
	path := r.target.ControlPath
	shown := tilde(path, p.opt.Getenv("HOME"))
	failed := func(what string, err error) error {
		if ctx.Err() != nil {
			return ended(ctx, "connecting to the master")
		}
		return &Error{
			Code: Unreachable, Message: "no OpenSSH master at " + shown + ": " + what,
			Hint: "start one: ssh -fNM -o ControlPath=" + shown + " " + r.target.Name, Err: err,
		}
	}
	nc, err := new(net.Dialer).DialContext(wait.ctx, "unix", path)
	if err != nil {
		reason, _ := reasonOf(err)
		return nil, failed(reason, err)
	}
	stop := context.AfterFunc(wait.ctx, func() { nc.Close() })
	conn, chans, reqs, err := ssh.NewControlClientConn(nc)
	if !stop() && err == nil {
		err = context.Cause(wait.ctx)
	}
	if err != nil {
		nc.Close()
		return nil, failed("it does not answer as a master", err)
	}
	return newConn(p, r, ssh.NewClient(conn, chans, reqs), nil), nil
}
