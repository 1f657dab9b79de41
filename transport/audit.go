package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"time"

	"pvelens/allowlist"
)

// An AuditLine is one line of the audit log. It has no field for an output or
// for an argument: what was refused is told by class, slot, length and its first
// offending byte.
type AuditLine struct {
	At      time.Time `json:"at"`
	PID     int       `json:"pid"`
	Event   string    `json:"event"` // start allowed refused done recovered rotated
	Node    string    `json:"node,omitempty"`
	Role    string    `json:"role,omitempty"`
	Form    string    `json:"form,omitempty"`
	Class   string    `json:"class,omitempty"`     // of refused: an allowlist.Class, or internal
	Slot    string    `json:"slot,omitempty"`      // of refused
	Length  int       `json:"length,omitempty"`    // of refused: bytes of the word
	Byte    string    `json:"byte,omitempty"`      // of refused: first offending byte as \xNN
	Exit    *int      `json:"exit,omitempty"`      // of done
	MS      *int64    `json:"ms,omitempty"`        // of done
	Bytes   *int      `json:"bytes,omitempty"`     // of done: of stdout
	Code    Code      `json:"code,omitempty"`      // of done without an exit
	Version string    `json:"version,omitempty"`   // of start
	Table   string    `json:"allowlist,omitempty"` // of start: SHA-256 of the table
	Prev    string    `json:"prev"`                // SHA-256 of the line before, without its newline
}

func (l *AuditLine) setResult(res Result, err error) {
	ms := res.Elapsed.Milliseconds()
	l.MS = &ms
	if err != nil {
		l.Code = asError("", err).Code
		return
	}
	n := len(res.Stdout)
	l.Bytes = &n
	if res.Exit >= 0 {
		exit := res.Exit // of its own, so that a kept line does not keep the output
		l.Exit = &exit
	}
}

// noPrev is what the first line of a chain has before it.
var noPrev = hex.EncodeToString(make([]byte, sha256.Size))

const (
	auditSize = 16 << 20 // a file is rotated when it is larger
	auditKept = 8        // rotated files
	auditLine = 4 << 10  // no line of ours is longer
)

// An Audit is an append-only log whose lines are chained by SHA-256. Several
// processes may append to one file.
type Audit struct {
	path string // "" is memory
	now  func() time.Time
	most int64 // bytes of a file before it is rotated

	mu    sync.Mutex
	file  *os.File
	lines []AuditLine
	head  string
}

// OpenAudit opens or creates the log at path, with mode 0600. The error of a log
// that cannot be written is an *Error with code CONFIG.
func OpenAudit(path string) (*Audit, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, auditError("", err)
	}
	a := &Audit{path: path, now: time.Now, most: auditSize, head: noPrev}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.lock(); err != nil {
		return nil, auditError("", err)
	}
	a.unlock()
	return a, nil
}

// MemoryAudit returns a log that lives in memory, for the demo.
func MemoryAudit() *Audit { return &Audit{now: time.Now, head: noPrev} }

// Start writes the start line, and returns the head of the chain after it: noted
// elsewhere, it proves later that nothing before was cut off.
func (a *Audit) Start(version string) (head string, err error) {
	if err := a.append(AuditLine{Event: "start", Version: version, Table: allowlist.Hash()}); err != nil {
		return "", auditError("", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.head, nil
}

// Lines returns what a memory log holds; of a file it returns none.
func (a *Audit) Lines() []AuditLine {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]AuditLine{}, a.lines...)
}

// Close closes the file. Nothing can be appended afterwards.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file, a.path = nil, "\x00"
	return f.Close()
}
