package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// A fault is one way in which a server misbehaves, and what Run makes of it.
type fault struct {
	name   string
	set    func(s *server)
	host   func(h *Host)
	code   Code   // "" is a result without an error
	text   string // part of the message
	signal string
	cut    bool
}

func unlessProbe(f func(*call)) func(*call) {
	return func(c *call) {
		if isProbe(c) {
			answer(c)
			return
		}
		f(c)
	}
}

// says makes a server write text before it would speak SSH, and close.
func says(text string) func(*server) {
	return func(s *server) {
		s.accept = func(c net.Conn) bool {
			io.WriteString(c, text)
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
			return false
		}
	}
}

var faults = []fault{
	{name: "silent after accept", code: Timeout, text: "accepts connections but does not start SSH within 200ms", set: func(s *server) {
		s.accept = func(c net.Conn) bool { io.Copy(io.Discard, c); return false }
	}},
	{name: "closes at once", code: Unreachable, text: "connection closed before SSH started", set: func(s *server) {
		s.accept = func(net.Conn) bool { return false }
	}},
	{name: "garbage before the version", code: Unreachable, text: `it said "HTTP/1.1 400 Bad Request\r\n\r\n<b>\x1b[31mno"`, set: says("HTTP/1.1 400 Bad Request\r\n\r\n<b>\x1b[31mno")},
	{name: "garbage, then silence", code: Timeout, text: `it said "220 mail ready"`, set: func(s *server) {
		s.accept = func(c net.Conn) bool { io.WriteString(c, "220 mail ready\r\n"); io.Copy(io.Discard, c); return false }
	}},
	{name: "source penalty", code: Unreachable, text: `server said "Not allowed at this time" (source penalty); pausing 60 s`, set: says("Not allowed at this time\r\n")},
	{name: "too many logins", code: Unreachable, text: "Exceeded MaxStartups", set: says("Exceeded MaxStartups\r\n")},
	{name: "100 kB banner", code: Unreachable, text: "not an SSH server", set: says(strings.Repeat("x", 100<<10))},
	{name: "a notice before the version is fine", set: func(s *server) {
		s.accept = func(c net.Conn) bool { io.WriteString(c, "hello\r\n"); return true }
	}},
	{name: "silent in the key exchange", code: Timeout, text: "did not end within 200ms", set: func(s *server) {
		s.accept = func(c net.Conn) bool { io.WriteString(c, "SSH-2.0-x\r\n"); io.Copy(io.Discard, c); return false }
	}},
	{name: "closes in the key exchange", code: Unreachable, text: "during the handshake", set: says("SSH-2.0-x\r\n")},
	{name: "slow output", code: Timeout, text: "running clock", set: func(s *server) {
		s.run = unlessProbe(func(c *call) {
			for {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}},
	{name: "no output", code: Timeout, text: "running clock", set: func(s *server) {
		s.run = unlessProbe(func(c *call) { c.conn.Wait() })
	}},
	{name: "login shell hangs", code: Timeout, text: "logged in, but the login shell ran no command in time", set: func(s *server) {
		s.run = func(c *call) { c.conn.Wait() }
	}},
	{name: "probe unanswered", code: Timeout, text: "learning what the login shell prints", set: func(s *server) {
		s.run = func(c *call) {
			if !isProbe(c) {
				answer(c)
				return
			}
			c.conn.Wait()
		}
	}},
	{name: "drop in the middle", code: Unreachable, text: "connection lost", set: func(s *server) {
		s.run = unlessProbe(func(c *call) { io.WriteString(c, strings.Repeat("x", 100)); c.conn.Close() })
	}},
	{name: "drop at exec", code: Unreachable, text: "connection lost", set: func(s *server) {
		s.run = func(c *call) { c.conn.Close() }
	}},
	{name: "drop at open", code: Unreachable, text: "connection lost", set: func(s *server) {
		s.open = func(nc ssh.NewChannel) bool { s.drop(); return false }
	}},
	{name: "channel open unanswered", code: Timeout, text: "running clock", set: func(s *server) {
		s.open = func(nc ssh.NewChannel) bool { return false }
	}},
	{name: "huge output", cut: true, set: func(s *server) {
		s.run = unlessProbe(func(c *call) { c.Write(bytes.Repeat([]byte("x"), 1<<20)); c.conn.Wait() })
	}},
	{name: "huge error output", set: func(s *server) {
		s.run = unlessProbe(func(c *call) { c.Stderr().Write(bytes.Repeat([]byte("x"), 4<<20)); c.exit(0) })
	}},
	{name: "session prohibited", code: PermissionDenied, text: `server refused a session: "no sessions here"`, set: func(s *server) {
		s.open = func(nc ssh.NewChannel) bool { nc.Reject(ssh.Prohibited, "no sessions here"); return false }
	}},
	{name: "session refused for good", code: Timeout, text: "running clock", set: func(s *server) {
		s.open = func(nc ssh.NewChannel) bool { nc.Reject(ssh.ConnectionFailed, "open failed"); return false }
	}},
	{name: "exit by signal", signal: "KILL", set: func(s *server) {
		s.run = unlessProbe(func(c *call) {
			c.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal    string
				Core      bool
				Msg, Lang string
			}{"KILL", false, "", ""}))
		})
	}},
	{name: "no exit status", code: Unsupported, text: "without an exit status", set: func(s *server) {
		s.run = unlessProbe(func(c *call) { io.WriteString(c, "out") })
	}},
	{name: "malformed exit status", code: Unreachable, text: "connection lost", set: func(s *server) {
		s.run = unlessProbe(func(c *call) { c.SendRequest("exit-status", false, []byte{1}) })
	}},
	{name: "wrong host key", code: HostKey, text: "HOST KEY CHANGED", host: func(h *Host) {
		fields := strings.Fields(string(h.KnownHosts))
		other, _, _, _, _ := ssh.ParseAuthorizedKey([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvKCbiX8yUNvbMsmkPQwcxNoSFDOGbPUXCrOvIOrLvH"))
		h.KnownHosts = []byte(fields[0] + " " + string(ssh.MarshalAuthorizedKey(other)))
	}},
	{name: "keepalive unanswered while a command hangs", code: Unreachable, text: "connection lost", set: func(s *server) {
		s.request = func(*ssh.Request) bool { return false }
		s.run = unlessProbe(func(c *call) { c.conn.Wait() })
	}, host: func(h *Host) { h.Target.ServerAliveInterval = 5 * time.Millisecond; h.Target.ServerAliveCountMax = 2 }},
	{name: "nobody listens", code: Unreachable, text: "connection refused", set: func(s *server) { s.l.Close() }},
	{name: "no such name", code: Unreachable, text: "no such host name", host: func(h *Host) { h.Target.HostName = "nowhere.invalid" }},
}

// setFault applies f to a server that is not listening yet, and returns the host.
func setFault(s *server, f fault) *Host {
	if f.set != nil && f.name != "nobody listens" {
		f.set(s)
	}
	s.start()
	if f.name == "nobody listens" {
		f.set(s)
	}
	h := s.hostOf("pve1")
	h.ConnectTimeout = 200 * time.Millisecond
	if f.host != nil {
		f.host(h)
	}
	return h
}

func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := setFault(newServer(t), f)
			p := newPool(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			res, err := p.Run(ctx, h, clock(t))
			if codeOf(err) != f.code {
				t.Fatalf("got %v (code %s), want code %q", err, codeOf(err), f.code)
			}
			if err != nil {
				var e *Error
				errors.As(err, &e)
				if !strings.HasPrefix(err.Error(), "pve1: ") || !strings.Contains(e.Message, f.text) {
					t.Errorf("got %q, want a text with %q", err, f.text)
				}
				if e.Hint == "" {
					t.Errorf("%v: has no hint", err)
				}
				return
			}
			if res.Signal != f.signal || res.Truncated != f.cut {
				t.Errorf("got signal %q truncated %v", res.Signal, res.Truncated)
			}
			if max := clock(t).Form().Cap; len(res.Stdout) > max || len(res.Stderr) > maxStderr {
				t.Errorf("%d bytes of stdout, %d of stderr: over the caps", len(res.Stdout), len(res.Stderr))
			}
		})
	}
}

// TestFaultsLeakNothing runs each fault many times in one process.
func TestFaultsLeakNothing(t *testing.T) {
	fds, routines := descriptors(t), runtime.NumGoroutine()
	p := New(Options{Audit: MemoryAudit(), Getenv: func(string) string { return "" }})
	p.time.rest, p.time.penalty = 0, 0
	done := make(chan bool)
	var servers []*server
	n := 0
	gate := make(chan bool, 64)
	t.Run("faults", func(t *testing.T) {
		for _, f := range faults {
			s := newServer(t)
			servers = append(servers, s)
			h := setFault(s, f)
			h.ConnectTimeout = 50 * time.Millisecond
			for range 1000/len(faults) + 1 {
				n++
				gate <- true
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
					defer cancel()
					p.Run(ctx, h, clock(t))
					<-gate
					done <- true
				}()
			}
			for range 1000/len(faults) + 1 {
				<-done
			}
		}
		p.Close()
		settle(t, "connections", 0, func() (open int) {
			for _, s := range servers {
				open += int(s.conns.now.Load())
			}
			return open
		})
	})
	if n < 1000 {
		t.Fatalf("%d faults, want 1000", n)
	}
	settle(t, "goroutines", routines, runtime.NumGoroutine)
	settle(t, "descriptors", fds, func() int { return descriptors(t) })
}

// settle waits until count is back at what it was, or nearly: others may run.
func settle(t *testing.T, what string, before int, count func() int) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for now := count(); now > before+3; now = count() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			buf := make([]byte, 1<<20)
			t.Fatalf("%d %s, %d before\n%s", now, what, before, buf[:runtime.Stack(buf, true)])
		}
	}
}

func descriptors(t *testing.T) int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if d, err := os.ReadDir(dir); err == nil {
			return len(d)
		}
	}
	t.Skip("no list of descriptors on this system")
	return 0
}
