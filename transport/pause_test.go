package transport

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

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
	s.accept = func(c net.Conn) bool {
		io.ReadFull(c, make([]byte, len("SSH-2.0-")))
		close(arrived)
		io.Copy(io.Discard, c)
		close(gone)
		return false
	}
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

// TestSuspectConnectionIsAskedFirst: after a command without an answer, the next
// one is not sent before the node has shown that it lives.
func TestSuspectConnectionIsAskedFirst(t *testing.T) {
	s := newServer(t)
	var dead atomic.Bool
	s.request = func(*ssh.Request) bool { return s.conns.total.Load() > 1 }
	s.run = func(c *call) {
		if dead.Load() && s.conns.total.Load() == 1 {
			c.conn.Wait()
			return
		}
		answer(c)
	}
	s.start()
	p := newPool(t)
	p.time.check = 100 * time.Millisecond
	h := s.hostOf("pve1")
	mustRun(t, p, h, clock(t))
	dead.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx, h, clock(t)); codeOf(err) != Timeout {
		t.Fatalf("got %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := p.Run(soon, h, command(t, "/bin/ping", "-n", "-c", "1", "-W", "3", "10.0.0.9")); err != nil {
		t.Errorf("got %v", err)
	}
}
