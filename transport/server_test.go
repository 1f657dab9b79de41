package transport

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"pvelens/allowlist"
	"pvelens/profiles"
)

// A gauge counts what is there now and the most there ever was.
type gauge struct{ now, most, total atomic.Int64 }

func (g *gauge) enter() {
	g.total.Add(1)
	n := g.now.Add(1)
	for {
		m := g.most.Load()
		if n <= m || g.most.CompareAndSwap(m, n) {
			return
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// A call is one session that the test server has accepted.
type call struct {
	ssh.Channel
	line string
	env  []string
	conn *ssh.ServerConn
}

func (c *call) exit(status int) {
	c.SendRequest("exit-status", false, ssh.Marshal(struct{ N uint32 }{uint32(status)}))
}

// A server is an in-process sshd. Its fields are set before the first connection.
type server struct {
	t       testing.TB
	l       net.Listener
	host    ssh.Signer
	cfg     *ssh.ServerConfig
	accept  func(net.Conn) bool       // false: the connection was dealt with
	open    func(ssh.NewChannel) bool // false: likewise
	request func(*ssh.Request) bool   // of global requests; false: not answered
	run     func(*call)               // nil: answer
	logins  gauge                     // for accept to count with
	sess    gauge
	conns   gauge
	mu      sync.Mutex
	lines   []string
	live    map[net.Conn]bool
	work    sync.WaitGroup
}

func newKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return s, pem.EncodeToMemory(block)
}

// newServer returns a server that is not yet listening, and that lets anybody in.
func newServer(t testing.TB) *server {
	host, _ := newKey(t)
	s := &server{t: t, host: host, cfg: &ssh.ServerConfig{NoClientAuth: true}, live: map[net.Conn]bool{}}
	s.cfg.AddHostKey(host)
	return s
}

func (s *server) start() *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.serve(l)
	s.t.Cleanup(s.stop)
	return s
}

func (s *server) serve(l net.Listener) {
	s.l = l
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.enter()
			s.mu.Lock()
			s.live[c] = true
			s.mu.Unlock()
			s.work.Go(func() {
				s.handle(c)
				s.mu.Lock()
				delete(s.live, c)
				s.mu.Unlock()
				c.Close()
				s.conns.leave()
			})
		}
	})
}

// drop ends all connections, as a reboot does.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.live {
		c.Close()
	}
}

func (s *server) stop() {
	s.l.Close()
	s.drop()
	s.work.Wait()
}

func (s *server) handle(c net.Conn) {
	if s.accept != nil && !s.accept(c) {
		return
	}
	sc, chans, reqs, err := ssh.NewServerConn(c, s.cfg)
	if err != nil {
		return
	}
	go func() {
		for r := range reqs {
			if s.request != nil && !s.request(r) {
				continue
			}
			if r.WantReply {
				r.Reply(false, nil)
			}
		}
	}()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for nc := range chans {
		if s.open != nil && !s.open(nc) {
			continue
		}
		switch nc.ChannelType() {
		case "session":
			sessions.Go(func() { s.session(sc, nc) })
		case "direct-tcpip":
			sessions.Go(func() { forward(nc) })
		default:
			nc.Reject(ssh.UnknownChannelType, "")
		}
	}
}

func (s *server) session(sc *ssh.ServerConn, nc ssh.NewChannel) {
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	s.sess.enter()
	defer s.sess.leave()
	defer ch.Close()
	c := &call{Channel: ch, conn: sc}
	for r := range reqs {
		switch r.Type {
		case "env":
			var kv struct{ K, V string }
			ssh.Unmarshal(r.Payload, &kv)
			c.env = append(c.env, kv.K+"="+kv.V)
			if r.WantReply {
				s.t.Errorf("env: the client waits for a reply")
			}
		case "exec":
			var line struct{ S string }
			ssh.Unmarshal(r.Payload, &line)
			c.line = line.S
			s.mu.Lock()
			s.lines = append(s.lines, c.line)
			s.mu.Unlock()
			r.Reply(true, nil)
			go ssh.DiscardRequests(reqs)
			if s.run != nil {
				s.run(c)
			} else {
				answer(c)
			}
			return
		default:
			s.t.Errorf("unexpected request %s", r.Type)
			r.Reply(false, nil)
		}
	}
}

// answer plays the programs of the forms that the tests use.
func answer(c *call) {
	words := strings.Fields(c.line)
	switch {
	case strings.HasSuffix(c.line, "/bin/echo pvelens-probe"):
		io.WriteString(c, "pvelens-probe\n")
	case words[len(words)-1] == "+%s.%N%z":
		io.WriteString(c, "1764435300.000000000+0000\n")
	default:
		io.WriteString(c, "ran "+words[len(words)-1]+"\n")
	}
	c.exit(0)
}

// ran returns the lines of the commands so far.
func (s *server) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func isProbe(c *call) bool { return strings.HasSuffix(c.line, "pvelens-probe") }

// forward connects a direct-tcpip channel.
func forward(nc ssh.NewChannel) {
	var to struct {
		Host  string
		Port  uint32
		From  string
		FPort uint32
	}
	ssh.Unmarshal(nc.ExtraData(), &to)
	c, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		nc.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		c.Close()
		return
	}
	go ssh.DiscardRequests(reqs)
	done := make(chan bool, 2)
	go func() { io.Copy(c, ch); done <- true }()
	go func() { io.Copy(ch, c); done <- true }()
	<-done
	c.Close()
	ch.Close()
	<-done
}

// target is how to reach the server.
func (s *server) target(name string) *profiles.Target {
	return targetAt(name, s.l.Addr())
}

func targetAt(name string, a net.Addr) *profiles.Target {
	tcp := a.(*net.TCPAddr)
	return &profiles.Target{Name: name, HostName: tcp.IP.String(), Port: tcp.Port, User: "root", IdentityAgent: "none"}
}

var testKey = sync.OnceValue(func() []byte {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(block)
})

// hostOf is a Host that trusts exactly the server's key.
func (s *server) hostOf(name string) *Host {
	return &Host{
		Target: s.target(name), Role: allowlist.PVE, Become: allowlist.AsIs, ConnectTimeout: 5 * time.Second,
		Signers: testKey(), KnownHosts: []byte(s.knownHost() + "\n"),
	}
}

func (s *server) knownHost() string {
	return knownhosts.Line([]string{s.l.Addr().String()}, s.host.PublicKey())
}

func newPool(t testing.TB) *Pool {
	p := New(Options{Audit: MemoryAudit(), Getenv: func(string) string { return "" }})
	t.Cleanup(func() { p.Close() })
	return p
}

func command(t testing.TB, words ...string) allowlist.Command {
	t.Helper()
	c, err := allowlist.Check(allowlist.PVE, words...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clock is a command that ends at once.
func clock(t testing.TB) allowlist.Command { return command(t, "/bin/date", "+%s.%N%z") }

func codeOf(err error) Code {
	if e, ok := err.(*Error); ok {
		return e.Code
	}
	return ""
}
