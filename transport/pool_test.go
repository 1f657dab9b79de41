package transport

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
)

func TestRun(t *testing.T) {
	s := newServer(t)
	envs := make(chan []string, 10)
	s.run = func(c *call) {
		if isProbe(c) {
			answer(c)
			return
		}
		envs <- c.env
		io.WriteString(c, "out")
		io.WriteString(c.Stderr(), "err")
		c.exit(3)
	}
	s.start()
	p := newPool(t)
	res, err := p.Run(t.Context(), s.hostOf("pve1"), clock(t))
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "out" || string(res.Stderr) != "err" || res.Exit != 3 || res.Noise || res.Truncated || res.Elapsed <= 0 {
		t.Errorf("got %+v", res)
	}
	if diff := cmp.Diff([]string{"LC_ALL=C.UTF-8"}, <-envs); diff != "" {
		t.Error(diff)
	}
	slices.Sort(s.lines)
	want := []string{"/usr/bin/timeout -k 2 5 /bin/date '+%s.%N%z'", "/usr/bin/timeout -k 2 5 /bin/echo pvelens-probe"}
	if len(s.ran()) != 2 || !strings.Contains(s.lines[1], "pvelens-probe") {
		t.Errorf("lines %q, want like %q", s.lines, want)
	}
	if _, err := p.Run(t.Context(), s.hostOf("pve1"), clock(t)); err != nil {
		t.Fatal(err)
	}
	if n := s.conns.total.Load(); n != 1 {
		t.Errorf("%d connections, want one that is reused", n)
	}
	if n := len(s.ran()); n != 3 {
		t.Errorf("%d commands, want one probe a connection", n)
	}
}

func TestRefusedOpensNoConnection(t *testing.T) {
	s := newServer(t).start()
	p := newPool(t)
	h := s.hostOf("pve1")
	docker := s.hostOf("nas")
	docker.Role = allowlist.Docker
	_, refusal := allowlist.Check(allowlist.PVE, "/bin/rm", "-rf", "/")
	var r *allowlist.Refusal
	if !errors.As(refusal, &r) {
		t.Fatal(refusal)
	}
	for name, try := range map[string]struct {
		run  func() error
		want Code
	}{
		"zero command": {func() error { _, err := p.Run(t.Context(), h, allowlist.Command{}); return err }, Internal},
		"other role":   {func() error { _, err := p.Run(t.Context(), docker, clock(t)); return err }, Internal},
		"refusal":      {func() error { return p.Refused(h, r) }, Refused},
	} {
		if err := try.run(); codeOf(err) != try.want {
			t.Errorf("%s: got %v, want %s", name, err, try.want)
		}
	}
	if n := s.conns.total.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
	for _, l := range p.opt.Audit.Lines() {
		if l.Event != "refused" {
			t.Errorf("audit has %+v", l)
		}
	}
	if n := len(p.opt.Audit.Lines()); n != 3 {
		t.Errorf("%d audit lines, want 3", n)
	}
}

func TestNothingRunsWithoutAudit(t *testing.T) {
	s := newServer(t).start()
	h := s.hostOf("pve1")
	none := New(Options{})
	defer none.Close()
	if _, err := none.Run(t.Context(), h, clock(t)); err == nil {
		t.Error("a pool without an audit log ran a command")
	}
	path := t.TempDir() + "/audit.jsonl"
	a, err := OpenAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	closed := New(Options{Audit: a})
	defer closed.Close()
	_, err = closed.Run(t.Context(), h, clock(t))
	if codeOf(err) != Config || !strings.Contains(err.Error(), "nothing runs") {
		t.Errorf("got %v", err)
	}
	if n := s.conns.total.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

func TestRunAudits(t *testing.T) {
	s := newServer(t).start()
	p := newPool(t)
	if _, err := p.Run(t.Context(), s.hostOf("pve1"), clock(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.opt.Audit.Lines() {
		got = append(got, l.Event+" "+l.Form+" "+l.Node)
	}
	slices.Sort(got)
	want := []string{"allowed clock pve1", "allowed probe pve1", "done clock pve1", "done probe pve1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConnectionsAreNotSharedBetweenIdentities(t *testing.T) {
	s := newServer(t).start()
	p := newPool(t)
	a, b := s.hostOf("pve1"), s.hostOf("pve1")
	b.Target.User = "other"
	c := s.hostOf("pve1")
	_, c.Signers = newKey(t)
	for _, h := range []*Host{a, b, c, a} {
		if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.conns.total.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestCloseEndsCommands(t *testing.T) {
	s := newServer(t)
	running := make(chan bool, 10)
	s.run = func(c *call) {
		running <- true
		io.Copy(io.Discard, c) // stdin ends at once
		c.conn.Wait()
	}
	s.start()
	p := newPool(t)
	done := make(chan error)
	go func() {
		_, err := p.Run(context.Background(), s.hostOf("pve1"), clock(t))
		done <- err
	}()
	<-running
	p.Close()
	if err := <-done; codeOf(err) != Cancelled {
		t.Errorf("a command during Close: %v", err)
	}
	if _, err := p.Run(t.Context(), s.hostOf("pve1"), clock(t)); codeOf(err) != Cancelled {
		t.Errorf("after Close: %v", err)
	}
}

// TestBecome: what is sent is the command's own rendering, and nothing else.
func TestBecome(t *testing.T) {
	s := newServer(t).start()
	p := newPool(t)
	mustRun(t, p, s.hostOf("pve1"), clock(t)) // with the probe
	list := command(t, "/usr/sbin/pct", "list")
	for become, want := range map[allowlist.Become]string{
		allowlist.AsIs: "/usr/sbin/pct list", allowlist.Sudo: "/usr/bin/sudo -n -- /usr/sbin/pct list",
		allowlist.SudoAll: "/usr/bin/sudo -n -- /usr/sbin/pct list", allowlist.ViaGate: "/usr/sbin/pct list",
	} {
		h := s.hostOf("pve1")
		h.Become = become
		if _, err := p.Run(t.Context(), h, list); err != nil {
			t.Fatal(err)
		}
		lines := s.ran()
		got := lines[len(lines)-1]
		if isTimed := strings.HasPrefix(got, "/usr/bin/timeout -k 2 "); !strings.HasSuffix(got, want) || isTimed == (become == allowlist.ViaGate) || got != list.Wire(become) {
			t.Errorf("%s: sent %q, want %q", become, got, want)
		}
	}
}
