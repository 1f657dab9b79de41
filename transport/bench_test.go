package transport

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"pvelens/allowlist"
	"pvelens/profiles"
)

// far returns the address of a proxy to addr whose round trips take rtt.
func far(t testing.TB, addr string, rtt time.Duration) net.Addr {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				<-time.After(rtt) // the handshake of TCP
				s, err := net.Dial("tcp", addr)
				if err != nil {
					c.Close()
					return
				}
				go late(s, c, rtt/2)
				go late(c, s, rtt/2)
			}()
		}
	}()
	return l.Addr()
}

// late copies from src to dst, each piece when it is due.
func late(dst, src net.Conn, by time.Duration) {
	type piece struct {
		b   []byte
		due time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := src.Read(b)
			if n > 0 {
				pieces <- piece{b[:n], time.Now().Add(by)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := dst.Write(p.b); err != nil {
			break
		}
	}
	dst.Close()
	src.Close()
}

var rtts = []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond}

// behind is the server under the address of a proxy.
func (s *server) behind(a net.Addr) *Host {
	h := s.hostOf("pve1")
	h.Target = targetAt("pve1", a)
	h.KnownHosts = []byte(knownhosts.Line([]string{a.String()}, s.host.PublicKey()))
	return h
}

func roundTrips(b *testing.B, rtt time.Duration) {
	if rtt > 0 {
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(rtt), "roundtrips/op")
	}
}

// BenchmarkFirstContact: dial, login, probe and one command.
func BenchmarkFirstContact(b *testing.B) {
	for _, rtt := range rtts {
		b.Run("rtt="+rtt.String(), func(b *testing.B) {
			s := newServer(b)
			s.cfg.NoClientAuth = false
			s.cfg.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }
			s.start()
			h := s.behind(far(b, s.l.Addr().String(), rtt))
			cmd := clock(b)
			for b.Loop() {
				p := New(Options{Audit: MemoryAudit(), Getenv: func(string) string { return "" }})
				if _, err := p.Run(context.Background(), h, cmd); err != nil {
					b.Fatal(err)
				}
				p.Close()
			}
			roundTrips(b, rtt)
		})
	}
}

// BenchmarkCommand: one command, and four at once, on a pooled connection.
func BenchmarkCommand(b *testing.B) {
	for _, rtt := range rtts {
		for _, n := range []int{1, 4} {
			b.Run(fmt.Sprintf("rtt=%s/atonce=%d", rtt, n), func(b *testing.B) {
				s := newServer(b).start()
				h := s.behind(far(b, s.l.Addr().String(), rtt))
				p := newPool(b)
				cmd := clock(b)
				mustRun(b, p, h, cmd)
				for b.Loop() {
					var work sync.WaitGroup
					for range n {
						work.Go(func() { mustRun(b, p, h, cmd) })
					}
					work.Wait()
				}
				roundTrips(b, rtt)
			})
		}
	}
}

func mustRun(t testing.TB, p *Pool, h *Host, c allowlist.Command) {
	if _, err := p.Run(context.Background(), h, c); err != nil {
		t.Error(err)
	}
}

// BenchmarkFanOut: one command on each of many nodes 20 ms away, of which a tenth
// is silent and the connect timeout 3 s; then the next call.
func BenchmarkFanOut(b *testing.B) {
	const rtt = 20 * time.Millisecond
	silent, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		b.Fatal(err)
	}
	defer silent.Close()
	for _, nodes := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			s := newServer(b).start()
			way := far(b, s.l.Addr().String(), rtt)
			_, port, _ := net.SplitHostPort(silent.Addr().String())
			cmd := clock(b)
			var first, next time.Duration
			for b.Loop() {
				var hosts []*Host
				for i := range nodes {
					h := s.behind(way)
					h.ConnectTimeout = 3 * time.Second
					h.Target.Name = fmt.Sprint("pve", i)
					h.Target.HostKeyAlias = "all"
					h.KnownHosts = []byte("all " + string(ssh.MarshalAuthorizedKey(s.host.PublicKey())))
					h.Target.HostName = fmt.Sprintf("127.0.%d.%d", 1+i/200, 1+i%200)
					if i%10 == 9 {
						h.Target.Port, _ = strconv.Atoi(port)
					} else {
						h.Target.HostName = "127.0.0.1"
					}
					hosts = append(hosts, h)
				}
				p := New(Options{Audit: MemoryAudit(), Getenv: func(string) string { return "" }})
				p.doors[hosts[0].address(b)] = make(chan struct{}, maxDials) // they stand for nodes of their own
				first += fanOut(p, hosts, cmd)
				next += fanOut(p, hosts, cmd)
				p.Close()
			}
			b.ReportMetric(first.Seconds()/float64(b.N), "s/first")
			b.ReportMetric(next.Seconds()/float64(b.N), "s/next")
		})
	}
}

func (h *Host) address(t testing.TB) string {
	r, err := newRoute(h)
	if err != nil {
		t.Fatal(err)
	}
	return r.address()
}

func fanOut(p *Pool, hosts []*Host, cmd allowlist.Command) time.Duration {
	start := time.Now()
	var work sync.WaitGroup
	for _, h := range hosts {
		work.Go(func() { p.Run(context.Background(), h, cmd) })
	}
	work.Wait()
	return time.Since(start)
}

// BenchmarkAgainstOpenSSH compares a command on a pooled connection with one ssh
// process a command, and with one through a ControlMaster. The ratios are of one
// run.
func BenchmarkAgainstOpenSSH(b *testing.B) {
	client := need(b, "ssh", "openssh-client")
	d := startSSHD(b, "MaxSessions 10")
	key := newEd25519()
	d.authorize(b, key)
	dir := b.TempDir()
	h := d.host(b)
	h.Signers = key.pem
	p := newPool(b)
	cmd := clock(b)
	mustRun(b, p, h, cmd)
	args := []string{
		"-F", "none", "-o", "BatchMode=yes", "-o", "UserKnownHostsFile=" + write(b, filepath.Join(dir, "known"), d.knownHosts()),
		"-i", write(b, filepath.Join(dir, "id"), string(key.pem)), "-p", strconv.Itoa(d.port), "-l", h.Target.User, "127.0.0.1",
	}
	sock := filepath.Join(dir, "master")
	master := exec.Command(client, append([]string{"-NM", "-o", "ControlPath=" + sock}, args...)...)
	if err := master.Start(); err != nil {
		b.Fatal(err)
	}
	defer master.Wait()
	defer master.Process.Kill()
	for !exists(sock) {
		<-time.After(10 * time.Millisecond)
	}
	spent := func(f func()) time.Duration { start := time.Now(); f(); return time.Since(start) }
	run := func(extra ...string) {
		argv := append(append(extra, args...), cmd.Wire(allowlist.AsIs))
		if out, err := exec.Command(client, argv...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	var pooled, process, shared time.Duration
	for b.Loop() {
		pooled += spent(func() { mustRun(b, p, h, cmd) })
		process += spent(func() { run() })
		shared += spent(func() { run("-o", "ControlPath="+sock) })
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(pooled.Seconds()*1000/float64(b.N), "ms/pooled")
	b.ReportMetric(float64(process)/float64(pooled), "ssh/pooled")
	b.ReportMetric(float64(shared)/float64(pooled), "master/pooled")
}

// BenchmarkIdleConnections: the memory and descriptors of another process with
// 256 idle connections.
func BenchmarkIdleConnections(b *testing.B) {
	s := everywhere(newServer(b))
	for b.Loop() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TEST_IDLE="+s.l.Addr().String(), "TEST_IDLE_KEY="+string(ssh.MarshalAuthorizedKey(s.host.PublicKey())))
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			var n float64
			var unit string
			if _, err := fmt.Sscan(line, &n, &unit); err == nil {
				b.ReportMetric(n, unit)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// idle is what the other process does: it prints a figure and its unit a line.
func idle(addr, key string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	p := New(Options{Audit: MemoryAudit(), Getenv: func(string) string { return "" }})
	defer p.Close()
	cmd, err := allowlist.Check(allowlist.PVE, "/bin/date", "+%s.%N%z")
	if err != nil {
		return err
	}
	before := figures()
	var hosts []*Host
	for i := range 256 {
		t := &profiles.Target{Name: fmt.Sprint("pve", i), HostName: fmt.Sprintf("127.0.%d.%d", 1+i/200, 1+i%200), User: "root", IdentityAgent: "none"}
		t.Port, _ = strconv.Atoi(port)
		hosts = append(hosts, &Host{Target: t, Role: allowlist.PVE, Become: allowlist.AsIs, ConnectTimeout: time.Minute, Signers: testKey(), KnownHosts: []byte("* " + key)})
	}
	fanOut(p, hosts, cmd)
	runtime.GC()
	after := figures()
	for _, f := range []string{"MiB-RSS", "descriptors", "goroutines"} {
		fmt.Println(after[f], f)
	}
	fmt.Println((after["MiB-RSS"]-before["MiB-RSS"])*1024/256, "KiB/connection")
	return nil
}

func figures() map[string]float64 {
	out := map[string]float64{"goroutines": float64(runtime.NumGoroutine())}
	if d, err := os.ReadDir("/proc/self/fd"); err == nil {
		out["descriptors"] = float64(len(d))
	}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return out
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var kib float64
		if _, err := fmt.Sscanf(sc.Text(), "VmRSS: %f kB", &kib); err == nil {
			out["MiB-RSS"] = kib / 1024
		}
	}
	return out
}

// BenchmarkAudit: one line into a file that other processes may write too.
func BenchmarkAudit(b *testing.B) {
	a := openAudit(b, filepath.Join(b.TempDir(), "audit.jsonl"))
	for b.Loop() {
		if err := a.append(AuditLine{Event: "allowed", Node: "pve1", Form: "state"}); err != nil {
			b.Fatal(err)
		}
	}
}
