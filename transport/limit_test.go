package transport

import (
	"context"
	"fmt"
	"io"
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

// hold returns a function that blocks until n callers are in it, and everybody
// after them not at all.
func hold(n int64) func() {
	var count atomic.Int64
	full := make(chan bool)
	return func() {
		if count.Add(1) == n {
			close(full)
		}
		<-full
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

// A handClock moves only when told.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestDeadNodeCostsNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault string
		first time.Duration
		code  Code
	}{
		{"silent", "silent after accept", 30 * time.Second, Timeout},
		{"closed", "closes at once", 30 * time.Second, Unreachable},
		{"penalty", "source penalty", time.Minute, Unreachable},
		{"auth", "", 30 * time.Second, AuthFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			for _, f := range faults {
				if f.name == tt.fault {
					f.set(s)
				}
			}
			var back atomic.Bool
			if fault := s.accept; fault != nil {
				s.accept = func(c net.Conn) bool { return back.Load() || fault(c) }
			}
			s.cfg.NoClientAuth = false
			s.cfg.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
				if back.Load() {
					return nil, nil
				}
				return nil, io.EOF
			}
			s.start()
			h := s.hostOf("pve1")
			h.ConnectTimeout = 100 * time.Millisecond
			clk := &handClock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
			p := New(Options{Audit: MemoryAudit(), Now: clk.Now, Getenv: func(string) string { return "" }})
			defer p.Close()
			run := func(dials int64) error {
				t.Helper()
				_, err := p.Run(t.Context(), h, clock(t))
				if codeOf(err) != tt.code {
					t.Fatalf("got %v, want %s", err, tt.code)
				}
				if n := s.conns.total.Load(); n != dials {
					t.Fatalf("%d dials, want %d", n, dials)
				}
				return err
			}
			run(1)
			clk.add(tt.first - time.Second)
			if err := run(1); !strings.Contains(err.Error(), "(not asked again for ") {
				t.Errorf("got %v", err)
			}
			clk.add(2*time.Second + tt.first/10)
			run(2)
			clk.add(tt.first + tt.first/10) // by now the pause has doubled
			run(2)
			clk.add(2 * tt.first)
			run(3)
			for i := range 6 {
				clk.add(330 * time.Second) // the longest pause
				run(int64(4 + i))
			}
			back.Store(true)
			clk.add(330 * time.Second)
			if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestNoPause: what is mended on this side is seen at once.
func TestNoPause(t *testing.T) {
	s := newServer(t).start()
	p := newPool(t)
	h := s.hostOf("pve1")
	good := h.KnownHosts
	h.KnownHosts = []byte{}
	file := write(t, t.TempDir()+"/known_hosts", "")
	h.KnownHosts, h.Target.UserKnownHosts = nil, []string{file}
	for range 2 {
		if _, err := p.Run(t.Context(), h, clock(t)); codeOf(err) != HostKey {
			t.Fatal(err)
		}
	}
	write(t, file, string(good))
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := s.hostOf("pve2")
	if _, err := p.Run(ctx, other, clock(t)); codeOf(err) != Cancelled {
		t.Errorf("got %v", err)
	}
	if _, err := p.Run(t.Context(), other, clock(t)); err != nil {
		t.Errorf("after a cancelled call: %v", err)
	}
}

// TestOneDialForMany: callers that come while a dial is under way share it, and
// the first to give up takes it from nobody.
func TestOneDialForMany(t *testing.T) {
	s := newServer(t)
	arrived, goOn := make(chan bool, 1), make(chan bool)
	s.accept = func(net.Conn) bool { arrived <- true; <-goOn; return true }
	s.start()
	p := newPool(t)
	h := s.hostOf("pve1")
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := p.Run(ctx, h, clock(t)); first <- err }()
	<-arrived
	r, err := newRoute(h)
	if err != nil {
		t.Fatal(err)
	}
	n := p.node(r)
	second := make(chan error)
	go func() { _, err := p.Run(t.Context(), h, clock(t)); second <- err }()
	for waiting := 0; waiting < 2; {
		n.mu.Lock()
		waiting = n.dialing.waiters
		n.mu.Unlock()
	}
	cancel()
	if err := <-first; codeOf(err) != Cancelled {
		t.Errorf("first: %v", err)
	}
	close(goOn)
	if err := <-second; err != nil {
		t.Errorf("second: %v", err)
	}
	wantMost(t, "connections", &s.conns, 1)
}

// TestCancelledDialEnds: when nobody waits, the dial is over.
func TestCancelledDialEnds(t *testing.T) {
	s := newServer(t)
	arrived, gone := make(chan bool), make(chan bool)
	s.accept = func(c net.Conn) bool { close(arrived); io.Copy(io.Discard, c); close(gone); return false }
	s.start()
	h := s.hostOf("pve1")
	h.ConnectTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	p := newPool(t)
	go func() { _, err := p.Run(ctx, h, clock(t)); done <- err }()
	<-arrived
	cancel()
	if err := <-done; codeOf(err) != Cancelled {
		t.Errorf("got %v", err)
	}
	<-gone
}

func TestRebootedNodeIsFoundInOneCall(t *testing.T) {
	s := newServer(t).start()
	p := newPool(t)
	h := s.hostOf("pve1")
	for range 3 {
		if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
			t.Fatal(err)
		}
		s.drop()
	}
	if n := s.conns.total.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// TestProbeAndAgentFormsAreNotRepeated: a command that reaches beyond the node
// is sent once, even when its answer is lost.
func TestCommandsWithAnEffectAreNotRepeated(t *testing.T) {
	s := newServer(t)
	s.run = unlessProbe(func(c *call) { c.conn.Close() })
	s.start()
	p := newPool(t)
	if _, err := p.Run(t.Context(), s.hostOf("pve1"), command(t, "/bin/ping", "-n", "-c", "1", "-W", "3", "10.0.0.9")); codeOf(err) != Unreachable {
		t.Errorf("got %v", err)
	}
	pings := 0
	for _, l := range s.ran() {
		if strings.Contains(l, "ping") {
			pings++
		}
	}
	if pings != 1 {
		t.Errorf("%d pings, want 1", pings)
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
