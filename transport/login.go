package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"

	"pvelens/profiles"
)

// login runs the SSH handshake on nc. It owns nc and closes it on failure.
func (p *Pool) login(wait *patience, r *route, nc net.Conn) (*ssh.Client, error) {
	stream := &preamble{Conn: nc}
	home := p.opt.Getenv("HOME")
	keys, err := p.knownHosts(wait.ctx, r)
	if err != nil {
		nc.Close()
		return nil, err
	}
	who := &credentials{target: r.target, pem: r.signers, home: home, now: p.opt.Now, getenv: p.opt.Getenv, wait: wait}
	cfg, err := clientConfig(r.target, keys, who)
	if err != nil {
		nc.Close()
		return nil, err
	}
	client, err := handshake(wait.ctx, stream, r.address(), cfg)
	if err == nil {
		return client, nil
	}
	return nil, loginFailure(wait.ctx, r, stream, who, err)
}

// handshake ends when ctx does: closing a stream through a dead bastion does not
// end its reads, so it is left to itself then.
func handshake(ctx context.Context, nc net.Conn, addr string, cfg *ssh.ClientConfig) (*ssh.Client, error) {
	type outcome struct {
		client *ssh.Client
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		conn, chans, reqs, err := ssh.NewClientConn(nc, addr, cfg)
		if err != nil {
			done <- outcome{nil, err}
			return
		}
		done <- outcome{ssh.NewClient(conn, chans, reqs), nil}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			nc.Close()
		}
		return o.client, o.err
	case <-ctx.Done():
		nc.Close()
		go func() {
			if o := <-done; o.client != nil {
				o.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// loginFailure says why a handshake failed, and what to do about it.
func loginFailure(ctx context.Context, r *route, stream *preamble, who *credentials, err error) error {
	prefix := ""
	if r.via != nil {
		prefix = "via " + r.via.target.Name + ": "
	}
	e, penalised := explainLogin(ctx, r, stream, who, err)
	e.Message, e.Err = prefix+e.Message, err
	if p, ok := stream.Conn.(*proxy); ok {
		if why := p.why(); why != "" {
			e.Message += "; " + why
		}
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) {
		return e
	}
	return &dialFailure{err: e, penalised: penalised}
}

func explainLogin(ctx context.Context, r *route, stream *preamble, who *credentials, err error) (e *Error, penalised bool) {
	var own *Error
	var algos *ssh.AlgorithmNegotiationError
	before, spoke := stream.before()
	switch {
	case errors.As(err, &own):
		copied := *own
		return &copied, false
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow):
		return ended(ctx, "logging in to "+r.address()), false
	case ctx.Err() != nil:
		return slowLogin(r, before, spoke, who), false
	case errors.As(err, &algos):
		return noCommon(r.target, algos), false
	case !spoke && len(before) == 0 && r.target.ProxyCommand != "":
		return &Error{Code: Unreachable, Message: "ProxyCommand ended before SSH started", Hint: proxyHint(r)}, false
	case !spoke && r.target.ProxyCommand != "":
		e, penalised = noSSH(before)
		e.Hint += "; or " + proxyHint(r)
		return e, penalised
	case !spoke:
		return noSSH(before)
	case who.begun():
		return who.failure(err), false
	case errors.Is(err, io.EOF), isReset(err):
		return &Error{Code: Unreachable, Message: "the server dropped the connection during the handshake", Hint: "MaxStartups or a firewall; look at sshd's log on the node"}, false
	}
	return &Error{Code: Unreachable, Message: "handshake failed: " + said([]byte(err.Error())), Hint: "look at sshd's log on the node"}, false
}

func proxyHint(r *route) string {
	return "correct ProxyCommand in ssh_config; its whole line and its complaints: ssh -v " + r.target.Name
}

// noCommon explains a handshake without a common algorithm: the server knows
// only weak ones, or ssh_config leaves out what it has.
func noCommon(t *profiles.Target, algos *ssh.AlgorithmNegotiationError) *Error {
	e := &Error{
		Code: Unsupported, Message: fmt.Sprintf("no common algorithm: %s; the server offers only %s", algos.What, said([]byte(strings.Join(algos.RequestedAlgorithms, ",")))),
		Hint: "the server is old, or was set to weak algorithms: update it, or correct the lists in its sshd_config; pvelens uses no weak ones, even where ssh_config adds them",
	}
	can := ssh.SupportedAlgorithms()
	for _, l := range []struct {
		kind, keyword string
		set, ours     []string
	}{
		{"key exchange", "KexAlgorithms", t.KexAlgorithms, can.KeyExchanges},
		{"host key", "HostKeyAlgorithms", t.HostKeyAlgorithms, can.HostKeys},
		{"cipher", "Ciphers", t.Ciphers, can.Ciphers},
		{"MAC", "MACs", t.MACs, strictMACs(can.MACs)},
	} {
		if strings.HasSuffix(algos.What, l.kind) && l.set != nil && len(narrowed(algos.RequestedAlgorithms, l.ours)) > 0 {
			e.Hint = l.keyword + " in ssh_config leaves out what the server offers: add it there, or remove the line for this host"
		}
	}
	return e
}

// noSSH explains a server that closed, or was cut off, before it spoke SSH.
func noSSH(before []byte) (e *Error, penalised bool) {
	text := string(before)
	switch {
	case strings.Contains(text, "Not allowed at this time"):
		return &Error{
			Code: Unreachable, Message: "dropped before SSH started, server said " + said(before) + " (source penalty); pausing 60 s",
			Hint: "sshd punishes this address for failed logins (PerSourcePenalties); mend the login first",
		}, true
	case strings.Contains(text, "Exceeded MaxStartups"):
		return &Error{Code: Unreachable, Message: "dropped before SSH started, server said " + said(before), Hint: "too many logins at once; ask again, or raise MaxStartups on the node"}, false
	case text != "":
		return &Error{Code: Unreachable, Message: "not an SSH server: it said " + said(before), Hint: "correct HostName or Port in ssh_config"}, false
	}
	return &Error{
		Code: Unreachable, Message: "connection closed before SSH started",
		Hint: "MaxStartups, a firewall, or fail2ban on the node; is it sshd that listens on this port?",
	}, false
}

// slowLogin explains a login that took longer than the connect timeout.
func slowLogin(r *route, before []byte, spoke bool, who *credentials) *Error {
	e := &Error{Code: Timeout, Hint: "is it sshd that listens on this port, and is the node not overloaded? raise connect_timeout if it is slow"}
	switch {
	case who.asking():
		e.Message = "no answer from the ssh-agent in time"
		e.Hint = "it may wait for a touch or a confirmation; ask again and touch the key, or try: ssh-add -l"
	case !spoke && r.target.ProxyCommand != "":
		e.Message, e.Hint = "ProxyCommand does not reach an SSH server within "+seconds(r.timeout), proxyHint(r)
	case !spoke && len(before) > 0:
		e.Message = fmt.Sprintf("%s does not start SSH within %s; it said %s", r.address(), seconds(r.timeout), said(before))
	case !spoke:
		e.Message = fmt.Sprintf("%s accepts connections but does not start SSH within %s", r.address(), seconds(r.timeout))
	default:
		e.Message = fmt.Sprintf("the login at %s did not end within %s", r.address(), seconds(r.timeout))
	}
	if b := who.bannerText(); b != "" {
		e.Message += "; the server says " + b
	}
	return e
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || strings.Contains(err.Error(), "reset by peer")
}
