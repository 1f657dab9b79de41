package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	out := output{r.Stdout, r.Stderr, r.Exit, c.Form(), r.Noise}
	switch {
	case err != nil:
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			if own := (*Error)(nil); errors.As(cause, &own) {
				return out, &Error{Code: own.Code, Message: c.ID() + ": " + own.Message, Hint: own.Hint, Node: e.name()}
			}
		}
		return out, err
	case r.Truncated:
		return out, errorf(report.Internal, "%s printed more than %d bytes; the part is not used", c.ID(), c.Form().Cap)
	case r.Exit == 124 || r.Exit == 137 && len(r.Stdout) == 0:
		return out, errorf(report.Timeout, "%s did not end within %d s", c.ID(), c.Form().Limit).hint("the node is busy, or a file system or storage on it hangs")
	}
	return out, nil
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
	if bad != nil && bad.Code == report.PermissionDenied && s.Profile.Become == "sudo" && out.Form.Rights == allowlist.WWWData && e.raise() {
		if out, err = s.exec(ctx, e, id, values...); err != nil {
			return nil, err
		}
		bad = failure(out)
	}
	if bad != nil {
		return nil, bad
	}
	return out.Stdout, nil
}

// raise makes the entry use sudo for files of www-data; false if it did already.
func (e *entry) raise() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sudoAll || e.host == nil {
		return false
	}
	host := *e.host
	host.Become = allowlist.SudoAll
	e.host, e.sudoAll = &host, true
	return true
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
	if f.Good(out.Exit, out.Stderr) {
		return nil
	}
	text := bytes.ToLower(out.Stderr)
	has := func(words ...string) bool {
		for _, w := range words {
			if bytes.Contains(text, []byte(w)) {
				return true
			}
		}
		return false
	}
	switch {
	case out.Exit == 126 && has("pvelens-gate"):
		return errorf(report.Unsupported, "the gate on the node refuses %s", f.ID).hint("`pvelens doctor` compares the two tables")
	case has("a password is required", "is not in the sudoers", "not allowed to execute", "may not run sudo"):
		return errorf(report.PermissionDenied, "sudo does not let this user run %s without a password", f.ID).hint("allow it in sudoers, or use the gate: `pvelens gate install-script`")
	case has("sudo: not found", "sudo: no such file", "'/usr/bin/sudo'", "failed to run command", "/usr/bin/sudo: not found"):
		return errorf(report.Unsupported, "%s: a program is missing on the node", f.ID).hint("`pvelens doctor` shows what each form needs")
	case has("permission denied", "please run as root", "operation not permitted", "unable to load access control list", "must be root", "not permitted", "cannot initialize cmap") && !has("no such file"),
		has("ipcc_send_rec") && has("unknown error"):
		return errorf(report.PermissionDenied, "%s needs %s on the node", f.ID, rightsText(f.Rights)).hint("log in as root, set become = \"sudo\" or \"gate\", or put the user into group www-data for files")
	case has("ipcc_send_rec") && has("connection refused"):
		return errorf(report.NotFound, "%s: the cluster filesystem (pmxcfs) is not running", f.ID).hint("on the node: systemctl status pve-cluster")
	case out.Exit == 2 && strings.HasSuffix(f.Argv[0], "/grep"):
		return errorf(report.NotFound, "%s: the file is not there, or may not be read", f.ID)
	case out.Exit == 127:
		return errorf(report.Unsupported, "%s: the program is not installed on the node", f.ID)
	case out.Exit == 126:
		return errorf(report.PermissionDenied, "%s: the program may not be run by this user", f.ID)
	}
	e := errorf(report.Internal, "%s ended with exit %d", f.ID, out.Exit)
	if line := firstLine(out.Stderr); line != "" {
		e.Message += ": " + line
	}
	return e
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

// parallel runs f for every item at once and waits for all.
func parallel[T any](items []T, f func(i int, item T)) {
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { f(i, item) })
	}
	wg.Wait()
}

func (s *Session) progress(done, total int, format string, args ...any) {
	if s.env.Progress != nil {
		s.env.Progress(s.caller, done, total, fmt.Sprintf(format, args...))
	}
}
