package transport

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// everywhere makes a server listen on all addresses of loopback.
func everywhere(s *server) *server {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.serve(l)
	s.t.Cleanup(s.stop)
	return s
}

// hostAt is the server under one of its many addresses.
func (s *server) hostAt(i int) *Host {
	h := s.hostOf(fmt.Sprint("pve", i))
	h.Target.HostName = fmt.Sprintf("127.0.%d.%d", 1+i/200, 1+i%200)
	h.KnownHosts = []byte("* " + string(ssh.MarshalAuthorizedKey(s.host.PublicKey())))
	return h
}

// hold returns a function that blocks until n callers are in it, and then for a
// moment, in which one too many would show. Later callers pass.
func hold(n int64) func() {
	var count atomic.Int64
	over := make(chan bool)
	return func() {
		if count.Add(1) == n {
			time.AfterFunc(50*time.Millisecond, func() { close(over) })
		}
		<-over
	}
}

// runAll runs a command on each host at once.
func runAll(t *testing.T, p *Pool, hosts []*Host) {
	t.Helper()
	var work sync.WaitGroup
	for _, h := range hosts {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			if _, err := p.Run(ctx, h, clock(t)); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

func repeat(h *Host, n int) []*Host {
	out := make([]*Host, n)
	for i := range out {
		out[i] = h
	}
	return out
}

func wantMost(t *testing.T, what string, g *gauge, want int64) {
	t.Helper()
	if got := g.most.Load(); got != want {
		t.Errorf("%d %s at once, want %d", got, what, want)
	}
}

func TestAtMostFourSessionsAConnection(t *testing.T) {
	s := newServer(t)
	full := hold(4)
	s.run = func(c *call) { full(); answer(c) }
	s.start()
	runAll(t, newPool(t), repeat(s.hostOf("pve1"), 40))
	wantMost(t, "sessions", &s.sess, 4)
	wantMost(t, "connections", &s.conns, 1)
}

func TestAtMost32Dials(t *testing.T) {
	s := newServer(t)
	full := hold(32)
	s.accept = func(net.Conn) bool { s.logins.enter(); defer s.logins.leave(); full(); return true }
	everywhere(s)
	var hosts []*Host
	for i := range 250 {
		hosts = append(hosts, s.hostAt(i))
		hosts[i].ConnectTimeout = 30 * time.Second
	}
	runAll(t, newPool(t), hosts)
	wantMost(t, "dials", &s.logins, 32)
	wantMost(t, "connections", &s.conns, 250)
}

func TestAtMostFourDialsToOneAddress(t *testing.T) {
	s := newServer(t)
	full := hold(4)
	s.accept = func(net.Conn) bool { s.logins.enter(); defer s.logins.leave(); full(); return true }
	s.start()
	var hosts []*Host
	for i := range 20 {
		hosts = append(hosts, s.hostOf(fmt.Sprint("alias", i)))
	}
	runAll(t, newPool(t), hosts)
	wantMost(t, "dials", &s.logins, 4)
}

// through is a host behind bastions, first hop first.
func (s *server) through(name string, hops ...*server) *Host {
	h := s.hostOf(name)
	for i, hop := range hops {
		h.Target.ProxyJump = append(h.Target.ProxyJump, hop.target(fmt.Sprint("jump", i)))
		h.KnownHosts = append(h.KnownHosts, hop.knownHost()+"\n"...)
	}
	return h
}

func TestAtMostFourDialsThroughOneBastion(t *testing.T) {
	bastion := newServer(t).start()
	s := newServer(t)
	full := hold(4)
	s.accept = func(net.Conn) bool { s.logins.enter(); defer s.logins.leave(); full(); return true }
	s.start()
	var hosts []*Host
	for i := range 50 {
		hosts = append(hosts, s.through(fmt.Sprint("pve", i), bastion))
	}
	runAll(t, newPool(t), hosts)
	wantMost(t, "dials", &s.logins, 4)
	wantMost(t, "connections to the bastion", &bastion.conns, 1)
	if n := len(bastion.ran()); n != 0 {
		t.Errorf("%d commands on the bastion, want none", n)
	}
}

// TestFewSessions has servers that admit fewer sessions than we would use.
func TestFewSessions(t *testing.T) {
	for n := int64(1); n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newServer(t)
			var open, refused atomic.Int64
			s.open = func(nc ssh.NewChannel) bool {
				if open.Add(1) > n {
					open.Add(-1)
					refused.Add(1)
					nc.Reject(ssh.ConnectionFailed, "open failed")
					return false
				}
				return true
			}
			s.run = func(c *call) { defer open.Add(-1); answer(c) }
			s.start()
			runAll(t, newPool(t), repeat(s.hostOf("pve1"), 30))
			wantMost(t, "connections", &s.conns, 1)
			if got := refused.Load(); got == 0 || got > 4-n {
				t.Errorf("%d refusals, want 1 to %d: nothing was learned from them", got, 4-n)
			}
		})
	}
}

// TestManyNamesOfOneSSHD: an sshd with its own limits drops none of our logins
// and refuses none of our sessions.
func TestManyNamesOfOneSSHD(t *testing.T) {
	d := startSSHD(t, "MaxStartups 10:30:100\nMaxSessions 10")
	key := newEd25519()
	d.authorize(t, key)
	var hosts []*Host
	for i := range 16 {
		h := d.host(t)
		h.Target.Name, h.Signers = fmt.Sprint("alias", i), key.pem
		h.ConnectTimeout = time.Minute
		hosts = append(hosts, h)
	}
	p := newPool(t)
	runAll(t, p, hosts)
	runAll(t, p, repeat(hosts[0], 30))
	for _, bad := range []string{"drop connection", "no more sessions"} {
		if strings.Contains(d.log.String(), bad) {
			t.Errorf("sshd says: %s", bad)
		}
	}
}
