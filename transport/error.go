package transport

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Code says what kind of thing went wrong. The list is closed and the texts
// are stable: they are the codes that answers carry.
type Code string

// The codes that transport gives.
const (
	Unreachable      Code = "HOST_UNREACHABLE"  // refused, no route, no such name, no SSH there, connection lost
	AuthFailed       Code = "AUTH_FAILED"       // the node does not let us in
	HostKey          Code = "HOST_KEY"          // unknown, changed or revoked host key
	Timeout          Code = "TIMEOUT"           // no answer in time
	PermissionDenied Code = "PERMISSION_DENIED" // let in, but not allowed to run commands
	Unsupported      Code = "UNSUPPORTED"       // the node speaks something that pvelens does not
	Cancelled        Code = "CANCELLED"         // the caller no longer wants the answer
	Internal         Code = "INTERNAL"          // a mistake of pvelens itself
	Refused          Code = "REFUSED"           // no form permits the command
	Config           Code = "CONFIG"            // something to mend on this side
)

// An Error says why a command has no exit status. Message is one line without
// the node's name, Hint the next step; neither holds a command's output, and
// what a server said is quoted, clipped ASCII.
type Error struct {
	Code    Code
	Node    string // the destination as written in the profile, or ""
	Message string
	Hint    string
	Err     error // the cause, or nil
}

func (e *Error) Error() string {
	if e.Node == "" {
		return e.Message
	}
	return e.Node + ": " + e.Message
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// errLost is the cause of an Error when a connection ended under a command that
// may be sent again.
var errLost = errors.New("connection lost")

func lost(cause error) *Error {
	return &Error{
		Code: Unreachable, Message: "connection lost while a command ran",
		Hint: "the node rebooted, its sshd was stopped, or a firewall dropped the connection; ask again, and if it stays so look at sshd's log on the node",
		Err:  errors.Join(errLost, cause),
	}
}

// ended turns the end of a context into an Error; doing says what was under way.
func ended(ctx context.Context, doing string) *Error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errClosed) {
		return closedError()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, errSlow) {
		return &Error{Code: Timeout, Message: "no answer in time: " + doing, Hint: "the node is slow or hangs; ask again, or raise deadline in the profile", Err: context.DeadlineExceeded}
	}
	return &Error{Code: Cancelled, Message: "cancelled: " + doing, Err: context.Canceled}
}

var errClosed = errors.New("pool is closed")

func closedError() *Error {
	return &Error{Code: Cancelled, Message: "pvelens is shutting down", Err: errClosed}
}

// asError returns err as an *Error of the named node.
func asError(node string, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Code: Internal, Node: node, Message: err.Error(), Err: err}
	}
	if e.Node == node {
		return e
	}
	named := *e
	named.Node = node
	return &named
}

// said quotes what a server wrote, as clipped ASCII on one line.
func said(b []byte) string {
	const most = 200
	s := strings.TrimSpace(string(b))
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// tilde shortens a path for people.
func tilde(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && home != "" {
		return "~/" + rest
	}
	return path
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seconds shows a duration for people: 300ms, 5s, 90s.
func seconds(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + "s"
}
