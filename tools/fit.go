package tools

import "pvelens/tools/report"

// A concise answer is at most this long as JSON, so that a model's context is
// not filled by one call. Whoever asks for more than the default rows gets them.
const (
	maxConcise  = 8 << 10
	defaultRows = 50
	headBytes   = 200 // profile, times, source
)

// fit shortens a concise answer to maxConcise. cuts are tried in their order;
// each takes a little away, makes the report say so, and is false when it cannot
// go on.
func (s *Session) fit(r report.Tabler, limit int, cuts ...func() bool) {
	if s.Detailed || limit > defaultRows {
		return
	}
	for len(cuts) > 0 && s.size(r) > maxConcise {
		if !cuts[0]() {
			cuts = cuts[1:]
		}
	}
}

func (s *Session) size(r report.Tabler) int {
	s.mu.Lock()
	problems, err := Encode(s.problems)
	s.mu.Unlock()
	body, err2 := Encode(r)
	if err != nil || err2 != nil {
		return 0
	}
	return headBytes + len(problems) + len(body)
}
