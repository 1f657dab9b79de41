// Package report says what the parsed outputs mean: the types that tools answer
// with, whose JSON is the public schema, and the pure functions that build them.
//
// A field that was not measured is absent; a list is never absent but empty; 0
// never means unknown. Sizes are bytes (_bytes), times RFC 3339 UTC (_at),
// durations seconds (_s), shares 0..1 (_ratio). No type here has a field in
// which a secret could stand. The clock, thresholds and ignore rules are
// parameters: nothing here reads the time.
package report

import (
	"cmp"
	"slices"
	"time"
)

// A Code says what kind of error or problem it is. The list is closed.
type Code string

// The codes of errors and problems.
const (
	InvalidArgument  Code = "INVALID_ARGUMENT"
	NotFound         Code = "NOT_FOUND"
	Ambiguous        Code = "AMBIGUOUS"
	Refused          Code = "REFUSED" // only from allowlist.Check
	HostUnreachable  Code = "HOST_UNREACHABLE"
	AuthFailed       Code = "AUTH_FAILED"
	HostKey          Code = "HOST_KEY"
	PermissionDenied Code = "PERMISSION_DENIED"
	Timeout          Code = "TIMEOUT"
	Unsupported      Code = "UNSUPPORTED"
	Config           Code = "CONFIG"
	Internal         Code = "INTERNAL"
	Cancelled        Code = "CANCELLED"
)

// Codes is the closed list, in the order of the documentation.
var Codes = []Code{InvalidArgument, NotFound, Ambiguous, Refused, HostUnreachable, AuthFailed, HostKey, PermissionDenied, Timeout, Unsupported, Config, Internal, Cancelled}

// A Problem is a source that could not be read, or an answer that is less than
// what was asked. Node is a PVE name or an SSH destination.
type Problem struct {
	Node    string `json:"node,omitempty"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// A Source is one command that the answer was made from: its form, exit status
// and the milliseconds it took. It is given with detail=detailed.
type Source struct {
	Node string `json:"node"`
	Form string `json:"form"`
	Exit int    `json:"exit"`
	Ms   int64  `json:"ms"`
}

// An Answer is the part that every report has: how far it can be trusted.
// Complete is true if and only if every source that the answer's fields need
// was read in this call.
type Answer struct {
	Profile     string    `json:"profile"`
	CollectedAt string    `json:"collected_at"`
	JudgedAt    string    `json:"judged_at,omitempty"`
	Source      string    `json:"source,omitempty"`
	Complete    bool      `json:"complete"`
	Problems    []Problem `json:"problems"`
	Sources     []Source  `json:"sources,omitempty"`
}

// Head returns the answer itself, so that every report that embeds it can be
// handled alike.
func (a *Answer) Head() *Answer { return a }

// Sort puts problems and sources into their stable order and drops repeated
// problems.
func (a *Answer) Sort() {
	slices.SortFunc(a.Problems, func(x, y Problem) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Code, y.Code), cmp.Compare(x.Message, y.Message))
	})
	a.Problems = slices.Compact(a.Problems)
	if a.Problems == nil {
		a.Problems = []Problem{}
	}
	slices.SortStableFunc(a.Sources, func(x, y Source) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Form, y.Form))
	})
}

// A Page says which part of a list was returned. Next is the offset of the next
// part, absent on the last.
type Page struct {
	Total     int  `json:"total"`
	Returned  int  `json:"returned"`
	Truncated bool `json:"truncated"`
	Next      *int `json:"next,omitempty"`
}

// Cut returns the items from offset on, at most limit of them, and the page
// that says so. The items are never nil.
func Cut[T any](all []T, offset, limit int) ([]T, Page) {
	p := Page{Total: len(all)}
	from := min(max(offset, 0), len(all))
	to := min(from+limit, len(all))
	out := append([]T{}, all[from:to]...)
	p.Returned, p.Truncated = len(out), len(out) < len(all)
	if to < len(all) {
		p.Next = &to
	}
	return out, p
}

// At renders a Unix time in seconds as RFC 3339 in UTC.
func At(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// Ptr returns a pointer to v, for fields that may be absent.
func Ptr[T any](v T) *T { return &v }
