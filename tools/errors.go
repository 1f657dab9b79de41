// Package tools has one file a tool: its input, the forms it needs and the
// report it builds. The MCP server and the command line call the same tools.
package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pvelens/allowlist"
	"pvelens/profiles"
	"pvelens/tools/report"
	"pvelens/transport"
)

// An Error is why a tool could not answer at all: a code of the closed list, a
// fact and, where there is one, the next step.
type Error struct {
	Code    report.Code
	Message string
	Hint    string
	Node    string
}

// Error renders the text that callers see: `CODE: fact. Hint: next step.`
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.Hint != "" {
		s += ". Hint: " + e.Hint
	}
	return s
}

func errorf(code report.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// AsError gives any error of this program its code. An error without one is
// INTERNAL.
func AsError(err error) *Error {
	var (
		own     *Error
		config  *profiles.Error
		remote  *transport.Error
		refusal *allowlist.Refusal
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &config):
		return &Error{Code: report.Code(config.Code), Message: report.CleanError(config.Message), Hint: report.CleanError(config.Hint)}
	case errors.As(err, &remote):
		return &Error{Code: report.Code(remote.Code), Message: report.CleanError(remote.Message), Hint: report.CleanError(remote.Hint), Node: remote.Node}
	case errors.As(err, &refusal):
		return &Error{Code: report.Refused, Message: strings.Replace(strings.TrimPrefix(refusal.Error(), "refused ("), ")", "", 1)}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: report.Timeout, Message: "the deadline of the call passed"}
	case errors.Is(err, context.Canceled):
		return &Error{Code: report.Cancelled, Message: "the call was cancelled"}
	}
	return &Error{Code: report.Internal, Message: report.Clean(err.Error())}
}

func (e *Error) problem() report.Problem {
	return report.Problem{Node: e.Node, Code: e.Code, Message: e.Message, Hint: e.Hint}
}
