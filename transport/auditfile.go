package transport

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// append adds one line after the last one of the file, whoever wrote that.
func (a *Audit) append(l AuditLine) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l.At, l.PID = a.now().UTC().Truncate(time.Millisecond), os.Getpid()
	if a.path == "" {
		l.Prev = a.head
		a.head = hashLine(l.encode())
		a.lines = append(a.lines, l)
		return nil
	}
	if err := a.lock(); err != nil {
		return err
	}
	defer a.unlock()
	last, torn, size, err := a.tail()
	if err != nil {
		return err
	}
	l.Prev = hashLine(last)
	if len(last) == 0 {
		l.Prev = noPrev
	}
	var out []byte
	if torn {
		r := AuditLine{At: l.At, PID: l.PID, Event: "recovered", Prev: l.Prev}
		out = append([]byte("\n"), r.encode()...)
		l.Prev = hashLine(r.encode())
		out = append(out, '\n')
	}
	line := l.encode()
	out = append(append(out, line...), '\n')
	if _, err := a.file.Write(out); err != nil {
		return err
	}
	a.head = hashLine(line)
	if size+int64(len(out)) > a.most {
		a.rotate()
	}
	return nil
}

func (l AuditLine) encode() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic("transport: an audit line is plain data: " + err.Error())
	}
	return b
}

func hashLine(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// lock opens the file if need be and locks it. A file that was rotated away
// while we waited is not the log any more.
func (a *Audit) lock() error {
	for {
		if a.file == nil {
			f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				return err
			}
			a.file = f
		}
		if err := flock(a.file, syscall.LOCK_EX); err != nil {
			return err
		}
		mine, err := a.file.Stat()
		if err != nil {
			return err
		}
		if now, err := os.Stat(a.path); err == nil && os.SameFile(mine, now) {
			return a.checkMode(mine)
		}
		a.file.Close()
		a.file = nil
	}
}

// checkMode takes a log that others can write, or that is no plain file, for no
// log, and closes others' view of one that they can only read.
func (a *Audit) checkMode(fi fs.FileInfo) error {
	err := error(nil)
	switch mode := fi.Mode(); {
	case !mode.IsRegular():
		err = errors.New("not a regular file")
	case mode.Perm()&0o022 != 0:
		err = fmt.Errorf("mode %#o: others can write it; run: chmod 600 %s", mode.Perm(), a.path)
	case mode.Perm()&0o077 != 0:
		err = a.file.Chmod(0o600)
	}
	if err != nil {
		a.unlock()
	}
	return err
}

func (a *Audit) unlock() { flock(a.file, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}

// tail returns the last line of the file without its newline, whether the
// newline is missing, and the file's size.
func (a *Audit) tail() (last []byte, torn bool, size int64, err error) {
	fi, err := a.file.Stat()
	if err != nil || fi.Size() == 0 {
		return nil, false, 0, err
	}
	size = fi.Size()
	for n := int64(auditLine); ; n *= 2 {
		n = min(n, size)
		b := make([]byte, n)
		if _, err := a.file.ReadAt(b, size-n); err != nil && err != io.EOF {
			return nil, false, size, err
		}
		b, whole := bytes.CutSuffix(b, []byte("\n"))
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 || n == size {
			return b[i+1:], !whole, size, nil
		}
	}
}

// rotate moves the file aside. The new one is complete before it takes the name,
// so that no process ever finds an empty log and begins a chain of its own. When
// something fails, the log stays as it is and grows.
func (a *Audit) rotate() {
	first := AuditLine{At: a.now().UTC().Truncate(time.Millisecond), PID: os.Getpid(), Event: "rotated", Prev: a.head}.encode()
	next := a.path + ".new"
	if err := os.WriteFile(next, append(first, '\n'), 0o600); err != nil {
		return
	}
	defer os.Remove(next) // what is left of it after a failure
	for i := auditKept; i > 1; i-- {
		os.Rename(a.rotated(i-1), a.rotated(i)) // the oldest goes; there may be fewer
	}
	if err := os.Link(a.path, a.rotated(1)); err != nil {
		return
	}
	if err := os.Rename(next, a.path); err != nil {
		os.Remove(a.rotated(1))
		return
	}
	a.head = hashLine(first)
}

func (a *Audit) rotated(i int) string { return fmt.Sprintf("%s.%d", a.path, i) }

// auditError is the error of a log that cannot be written.
func auditError(node string, err error) error {
	return &Error{
		Code: Config, Node: node, Message: "audit log cannot be written, so nothing runs: " + err.Error(),
		Hint: "make the file and its folder writable for this user only, free disk space, or set XDG_STATE_HOME", Err: err,
	}
}
