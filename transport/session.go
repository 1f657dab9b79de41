package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	maxStderr   = 64 << 10
	maxRefusals = 6
)

// A session is one command under way. It keeps its slot until the server has
// ended it, however early the caller left.
type session struct {
	conn *conn
	out  limited
	errs limited
	done chan error

	gone     chan struct{} // closed when the caller has left
	ended    chan struct{} // closed when the server has ended it
	slotless bool          // it gave its slot up and got none

	mu  sync.Mutex
	ssh *ssh.Session
}

// work opens the session, runs line and reports to done.
func (s *session) work(line string, holdStdin bool) {
	cn := s.conn
	defer func() {
		if !s.slotless {
			give(cn.slots)
		}
		close(s.ended)
	}()
	stuck := time.AfterFunc(cn.pool.time.stuck, func() { cn.close(errSilent) })
	ss, err := s.open()
	stuck.Stop()
	if err != nil {
		s.done <- err
		return
	}
	defer ss.Close()
	if !s.adopt(ss) {
		s.done <- context.Canceled
		return
	}
	ss.Stdout, ss.Stderr = &s.out, &s.errs
	if holdStdin {
		// Held open for gates that end the command with their stdin; ours
		// notices that its stdout has gone.
		if _, err := ss.StdinPipe(); err != nil {
			s.done <- err
			return
		}
	}
	env := ssh.Marshal(struct{ Name, Value string }{"LC_ALL", "C.UTF-8"})
	if _, err := ss.SendRequest("env", false, env); err != nil {
		s.done <- lost(errNotSent)
		return
	}
	if err := ss.Start(line); err != nil {
		s.done <- s.startFailure(err)
		return
	}
	cn.shell.began.Store(true)
	s.done <- ss.Wait()
}

// open opens a channel, and asks again when the server refuses: it has fewer
// sessions than we thought, or frees them late.
func (s *session) open() (*ssh.Session, error) {
	cn := s.conn
	for try := 0; ; try++ {
		ss, err := cn.client.NewSession()
		var refused *ssh.OpenChannelError
		switch {
		case err == nil:
			return ss, nil
		case !errors.As(err, &refused):
			return nil, lost(errors.Join(errNotSent, err))
		case refused.Reason == ssh.Prohibited, try == maxRefusals:
			return nil, &Error{
				Code: PermissionDenied, Message: "server refused a session: " + said([]byte(refused.Message)),
				Hint: "raise MaxSessions in sshd_config on the node (10 is sshd's own), or look whether the account may run commands", Err: err,
			}
		}
		cn.pool.opt.Log.Debug("server refused a session (MaxSessions); retrying", "try", try)
		if err := s.stepBack(try); err != nil {
			return nil, err
		}
	}
}

// stepBack gives one of the connection's slots up for a while and waits for
// another, or, when none can be given up, for some time.
func (s *session) stepBack(try int) error {
	cn := s.conn
	var free chan struct{}
	pause := time.After(50 * time.Millisecond << try)
	if cn.shrink() {
		free, pause = cn.slots, nil
		time.AfterFunc(cn.pool.time.shrunk, cn.grow)
	}
	select {
	case free <- struct{}{}:
	case <-pause:
	case <-cn.closed:
		s.slotless = free != nil
		return lost(errNotSent)
	case <-s.gone:
		s.slotless = free != nil
		return context.Canceled
	}
	return nil
}

func (s *session) startFailure(err error) error {
	if s.conn.ended() {
		return lost(err)
	}
	if errors.Is(err, io.EOF) {
		return err
	}
	return &Error{
		Code: PermissionDenied, Message: "the server does not let this account run commands",
		Hint: "look for ForceCommand internal-sftp, or a restriction of the key in authorized_keys", Err: err,
	}
}

// adopt reports whether the caller is still there.
func (s *session) adopt(ss *ssh.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ssh = ss
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}

// end leaves the session. TERM reaches only commands of normal users; the time
// limit that goes with the command, or the gate, ends those of root.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gone)
	if s.ssh != nil {
		s.ssh.Signal(ssh.SIGTERM)
		s.ssh.Close()
	}
}

// abandon leaves a session whose command may not end: sshd keeps a session of
// root open as long as its process lives, and one that hangs in the kernel lives
// on. When it should be over and is not, the connection is used no more.
func (s *session) abandon(after time.Duration) {
	s.end()
	time.AfterFunc(after, func() {
		select {
		case <-s.ended:
		default:
			s.conn.retire()
		}
	})
}

// A limited keeps the first bytes written to it, closes full at the first that
// is too many, and swallows the rest.
type limited struct {
	most int
	full chan struct{} // nil when the rest does not matter

	mu  sync.Mutex
	buf []byte
	cut bool
}

func (w *limited) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keep := min(len(b), w.most-len(w.buf))
	w.buf = append(w.buf, b[:keep]...)
	if keep < len(b) && !w.cut {
		w.cut = true
		if w.full != nil {
			close(w.full)
		}
	}
	return len(b), nil
}

func (w *limited) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *limited) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf[:len(w.buf):len(w.buf)]
}
