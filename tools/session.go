package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pvelens/allowlist"
	"pvelens/tools/report"
	"pvelens/transport"
)

// A Session is one tool call. It is the only path to a node: every command goes
// through allowlist.Check here, and every answer's problems are kept here.
type Session struct {
	*fleet
	// Detailed is set when detail=detailed was asked for.
	Detailed bool

	env         *Env
	ctx, caller context.Context
	cancel      context.CancelFunc
	now, judged time.Time
	answered    atomic.Bool

	mu       sync.Mutex
	complete bool
	problems []report.Problem
	sources  []report.Source
}

// close ends the call. Commands that nobody waits for any more have a context
// of their own.
func (s *Session) close() {
	s.answered.Store(true)
	s.cancel()
}

// finish writes into the report how far it can be trusted.
func (s *Session) finish(a *report.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Profile = s.Profile.Name
	a.CollectedAt = s.now.UTC().Format(time.RFC3339)
	if !s.judged.Equal(s.now) {
		a.JudgedAt = s.judged.UTC().Format(time.RFC3339)
	}
	a.Source = s.Source
	a.Complete = s.complete
	a.Problems = append(a.Problems, s.problems...)
	if s.Detailed {
		a.Sources = append(a.Sources, s.sources...)
	}
	a.Sort()
}

// note records a problem that takes nothing from the answer.
func (s *Session) note(node string, err error) {
	if err == nil {
		return
	}
	e := AsError(err)
	p := e.problem()
	if p.Node == "" {
		p.Node = node
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, p)
}

// miss records a problem that leaves the answer incomplete.
func (s *Session) miss(node string, err error) {
	if err == nil {
		return
	}
	s.note(node, err)
	s.incomplete()
}

func (s *Session) incomplete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = false
}

// An output is what a command printed and how it ended.
type output struct {
	Stdout, Stderr []byte
	Exit           int
	Form           allowlist.Form
	Noise          bool // the login shell printed text first; it was taken off
	Become         allowlist.Become
	Root           bool // it ran as root, or should have
}

// exec runs one form on an entry, with the values of its slots, and returns what
// it printed, whatever its exit status was. An error means that there is no exit
// status, that the output was cut, or that the time limit passed.
func (s *Session) exec(ctx context.Context, e *entry, id string, values ...string) (output, error) {
	words, err := argv(id, values...)
	if err != nil {
		return output{}, err
	}
	c, err := allowlist.Check(e.role, words...)
	if err != nil {
		if r := (*allowlist.Refusal)(nil); errors.As(err, &r) {
			if host, herr := s.host(ctx, e); herr == nil {
				_ = s.Pool.Refused(host, r)
			}
		}
		return output{}, err
	}
	host, err := s.host(ctx, e)
	if err != nil {
		return output{}, err
	}
	if node := c.Node(); node != "" && localOnly(c) {
		if known, _, _ := e.learned(); node != known {
			return output{}, errorf(report.Internal, "form %s is for node %s, not %s", c.ID(), node, known)
		}
	}
	r, err := s.Pool.Run(ctx, host, c)
	s.record(e, c, r)
	root, raised := asRoot(host, c.Form())
	out := output{r.Stdout, r.Stderr, r.Exit, c.Form(), r.Noise, host.Become, root}
	switch {
	case err != nil:
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && !errors.Is(err, transport.ErrSlowShell) {
			if own := (*Error)(nil); errors.As(cause, &own) {
				return out, &Error{Code: own.Code, Message: c.ID() + ": " + own.Message, Hint: own.Hint, Node: e.name()}
			}
		}
		return out, err
	case r.Truncated:
		return out, errorf(report.Internal, "%s printed more than %d bytes; the part is not used", c.ID(), c.Form().Cap)
	case r.Exit == 124 || r.Exit == 137 && len(r.Stdout) == 0:
		return out, errorf(report.Timeout, "%s did not end within %d s", c.ID(), c.Form().Limit).hint("the node is busy, or a file system or storage on it hangs")
	case raised:
		if bad := sudoTrouble(out); bad != nil {
			return out, bad
		}
	}
	return out, nil
}

// asRoot reports whether a form runs as root on a host, and whether it is sudo
// that makes it so.
func asRoot(h *transport.Host, f allowlist.Form) (root, raised bool) {
	if h.Target != nil && h.Target.User == "root" {
		return true, h.Become == allowlist.Sudo || h.Become == allowlist.SudoAll
	}
	switch h.Become {
	case allowlist.Sudo, allowlist.ViaGate:
		raised = f.Rights == allowlist.Root
	case allowlist.SudoAll:
		raised = f.Rights != allowlist.Any
	}
	return raised, raised
}

// sudoTrouble says why sudo did not start a command, or nil. The exit status is
// then sudo's own: taken for the command's, 1 would be an empty answer.
func sudoTrouble(out output) *Error {
	if out.Exit == 0 || len(out.Stdout) > 0 {
		return nil
	}
	text := string(bytes.ToLower(out.Stderr))
	if strings.Contains(text, "/usr/bin/sudo") && (strings.Contains(text, "no such file") || strings.Contains(text, "not found")) {
		return errorf(report.PermissionDenied, "%s needs %s, and sudo is not installed on the node", out.Form.ID, rightsText(out.Form.Rights)).
			hint("on the node: apt install sudo; or log in as root")
	}
	for line := range strings.Lines(string(out.Stderr)) {
		low := strings.ToLower(line)
		if !slices.ContainsFunc(sudoSays, func(words string) bool { return strings.Contains(low, words) }) {
			continue
		}
		_, why, ok := strings.Cut(line, "sudo: ")
		if !ok {
			why = line
		}
		e := errorf(report.PermissionDenied, "sudo does not run %s for this user: %s", out.Form.ID, report.Clean(strings.TrimSpace(why)))
		switch {
		case out.Become == allowlist.ViaGate:
			return e.hint("on the node, run the gate's install script again: it lets the user start the gate as root")
		case out.Form.Rights == allowlist.WWWData:
			return e.hint("put the user into group www-data, allow it in sudoers with NOPASSWD, or use the gate: `pvelens gate install-script`")
		}
		return e.hint("allow it in sudoers with NOPASSWD, or use the gate: `pvelens gate install-script`")
	}
	return nil
}

// sudoSays are words of sudo and sudo-rs when they do not start the command.
var sudoSays = []string{
	"a password is required", "required to read the password", "authentication is required", "authentication required", "authentication failed",
	"is not in the sudoers", "not allowed to execute", "is not allowed to run", "may not run sudo", "i'm sorry", "must have a tty", "no tty present",
	"no new privileges", "effective uid is not 0", "must be owned by uid 0", "must be setuid", "no valid sudoers sources", "account validation failure", "pam account",
}

// localOnly reports whether a {node} form must run on that node: pvesh does,
// for it would hop otherwise; the configuration files are the same everywhere.
func localOnly(c allowlist.Command) bool {
	return strings.HasSuffix(c.Argv()[0], "/pvesh")
}

func (s *Session) record(e *entry, c allowlist.Command, r transport.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, report.Source{Node: e.name(), Form: c.ID(), Exit: r.Exit, Ms: r.Elapsed.Milliseconds()})
}

// ask is exec for commands of which only a good exit is of use. With become =
// sudo it learns once whether files of www-data need sudo too.
func (s *Session) ask(ctx context.Context, e *entry, id string, values ...string) ([]byte, error) {
	out, err := s.exec(ctx, e, id, values...)
	if err != nil {
		return nil, err
	}
	bad := failure(out)
	if bad != nil && bad.Code == report.PermissionDenied && out.Become == allowlist.Sudo && out.Form.Rights == allowlist.WWWData {
		e.become(allowlist.SudoAll)
		if out, err = s.exec(ctx, e, id, values...); err != nil {
			if AsError(err).Code == report.PermissionDenied {
				e.become(allowlist.Sudo) // it does not help; the user may be put into the group meanwhile
			}
			return nil, err
		}
		bad = failure(out)
	}
	if bad == nil {
		bad = partOf(out)
	}
	if bad != nil {
		return nil, bad
	}
	return out.Stdout, nil
}

// partOf says that an output cannot be whole although its exit status is good, or
// nil. grep exits 0 only with a line, and tail -v heads every file that it does
// not call missing; what prints lines ends with one.
func partOf(out output) *Error {
	argv := out.Form.Argv
	program := argv[0][strings.LastIndexByte(argv[0], '/')+1:]
	lines := slices.Contains([]string{"grep", "df", "dpkg-query"}, program)
	switch {
	case lines && len(out.Stdout) == 0 && out.Exit == 0:
		return errorf(report.Internal, "%s: no output came, although its exit status says that there is some", out.Form.ID)
	case lines && len(out.Stdout) > 0 && !bytes.HasSuffix(out.Stdout, []byte("\n")):
		return errorf(report.Internal, "%s: the output is cut: its last line has no end", out.Form.ID)
	case program == "tail":
		for _, path := range argv[1:] {
			name := path[strings.LastIndexByte(path, '}')+1:] // after the slot
			if path[0] == '/' && !bytes.Contains(out.Stdout, []byte(name+" <==\n")) && !bytes.Contains(out.Stderr, []byte(name)) {
				return errorf(report.Internal, "%s: the output is cut: %s is neither in it nor called missing", out.Form.ID, path)
			}
		}
	}
	return nil
}

// become changes how commands on the entry get rights from now on.
func (e *entry) become(b allowlist.Become) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.host == nil || e.host.Become == b {
		return
	}
	host := *e.host
	host.Become = b
	e.host = &host
}

func (s *Session) host(ctx context.Context, e *entry) (*transport.Host, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.host == nil {
		h, err := s.Host(ctx, e.dest, e.role)
		if err != nil {
			return nil, err
		}
		e.host = h
	}
	return e.host, nil
}

// failure says why an exit was not good, or nil. What the node printed is
// classified, and quoted only cleaned and clipped.
func failure(out output) *Error {
	f := out.Form
	text := bytes.ToLower(out.Stderr)
	has := func(words ...string) bool {
		for _, w := range words {
			if bytes.Contains(text, []byte(w)) {
				return true
			}
		}
		return false
	}
	good := f.Good(out.Exit, out.Stderr)
	if has("insufficient permission", "not seeing messages") || // journalctl shows a user nothing, or the user's own, and may exit well
		good && !out.Root && len(out.Stdout) == 0 && strings.HasSuffix(f.Argv[0], "/journalctl") {
		e := denied(out)
		if !out.Root {
			e.Message += ", or the group systemd-journal"
		}
		return e
	}
	if good {
		return nil
	}
	if bad := sudoTrouble(out); bad != nil {
		return bad
	}
	switch {
	case out.Exit == 126 && has("pvelens-gate"):
		return errorf(report.Unsupported, "the gate on the node refuses %s", f.ID).hint("`pvelens doctor` compares the two tables")
	case out.Exit == 127, has("failed to run command") && has("no such file"):
		return errorf(report.Unsupported, "%s: %s is not installed on the node", f.ID, f.Argv[0]).hint("`pvelens doctor` shows which forms work")
	case has("cannot initialize cmap", "cannot initialize quorum", "cannot initialise cfg") && out.Root:
		return errorf(report.NotFound, "%s: corosync is not running", f.ID).hint("on the node: systemctl status corosync")
	case has("permission denied", "please run as root", "operation not permitted", "unable to load access control list", "must be root", "not permitted", "cannot initialize cmap", "cannot initialize quorum") && !has("no such file", "connection refused"),
		f.Rights == allowlist.WWWData && has("permission denied"), has("ipcc_send_rec") && has("unknown error"):
		return denied(out)
	case has("ipcc_send_rec") && has("connection refused"):
		return errorf(report.NotFound, "%s: the cluster filesystem (pmxcfs) is not running", f.ID).hint("on the node: systemctl status pve-cluster")
	case out.Exit == 2 && strings.HasSuffix(f.Argv[0], "/grep"):
		return errorf(report.NotFound, "%s: the file is not there, or may not be read", f.ID)
	case out.Exit == 126:
		return errorf(report.PermissionDenied, "%s: the program may not be run by this user", f.ID)
	}
	e := errorf(report.Internal, "%s ended with exit %d", f.ID, out.Exit)
	if line := firstLine(out.Stderr); line != "" {
		e.Message += ": " + line
	}
	return e
}

// denied says that a command lacked rights, and how to get them.
func denied(out output) *Error {
	f := out.Form
	if out.Root && f.Rights != allowlist.Any {
		e := errorf(report.PermissionDenied, "%s was denied on the node although it ran as root", f.ID)
		if line := firstLine(out.Stderr); line != "" {
			e.Message += ": " + line
		}
		return e.hint("look at the node: a container without rights, or AppArmor, may be in the way")
	}
	e := errorf(report.PermissionDenied, "%s needs %s on the node", f.ID, rightsText(f.Rights))
	if f.Role == allowlist.Docker {
		return e.hint("put the user into the group docker (it is as strong as root), or log in as root")
	}
	if f.Rights == allowlist.WWWData {
		return e.hint("put the user into group www-data, log in as root, or use the gate: `pvelens gate install-script`")
	}
	return e.hint("log in as root, set become = \"sudo\" where sudo asks for no password, or use the gate: `pvelens gate install-script`")
}

func rightsText(r allowlist.Rights) string {
	if r == allowlist.WWWData {
		return "root or the group www-data"
	}
	return "root"
}

// firstLine returns the first line that is not a perl locale warning.
func firstLine(b []byte) string {
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "perl: warning") && !strings.HasPrefix(line, "LANG") && !strings.HasPrefix(line, "LC_") && !strings.HasPrefix(line, "are supported") {
			return report.Clean(line)
		}
	}
	return ""
}

// detach returns a context for work that outlives the answer, such as finding
// out what a slow node is. It ends with the caller, until the call is answered.
func (s *Session) detach(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.caller), limit)
	stop := context.AfterFunc(s.caller, func() {
		if !s.answered.Load() {
			cancel()
		}
	})
	return ctx, func() { stop(); cancel() }
}

// parallel runs f for every item at once and waits for all. A panic in one
// becomes the caller's, so that it ends one call and not the program.
func parallel[T any](items []T, f func(i int, item T)) {
	var wg sync.WaitGroup
	var once sync.Once
	var broken any
	for i, item := range items {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { broken = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
				}
			}()
			f(i, item)
		})
	}
	wg.Wait()
	if broken != nil {
		panic(broken)
	}
}

func (s *Session) progress(done, total int, format string, args ...any) {
	if s.env.Progress != nil {
		s.env.Progress(s.caller, done, total, fmt.Sprintf(format, args...))
	}
}
