package tools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// The errors of JSON-RPC for a line that is no message.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// A drain stands between a client and the server. It counts requests and
// replies, and tells the server that the input has ended only when every
// request has its reply: otherwise the replies to a client that writes, closes
// its end and then reads would be lost. A line that is no message is answered
// here, because the server would end the session over it.
type drain struct {
	in    io.ReadCloser
	lines *bufio.Reader
	out   io.WriteCloser
	limit time.Duration
	rest  []byte // of the line that is passed on

	mu      sync.Mutex
	open    map[string]bool // ids of requests without a reply
	changed chan struct{}
	lineOut []byte
	batches bool // the session's version of the protocol has them
	writing sync.Mutex
}

func newDrain(in io.ReadCloser, out io.WriteCloser, limit time.Duration) *drain {
	return &drain{in: in, lines: bufio.NewReader(in), out: out, limit: limit, open: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// Read passes input on, whole lines only, and notes the requests in it.
func (d *drain) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		line, err := d.line()
		if len(line) > 0 && d.admit(line) {
			d.rest = line
			break
		}
		if err != nil {
			if err == io.EOF {
				d.wait()
			}
			return 0, err
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// line reads up to the next line feed. Of a line longer than maxFrame only the
// beginning is kept.
func (d *drain) line() ([]byte, error) {
	var line []byte
	for {
		part, err := d.lines.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxFrame+1-min(len(line), maxFrame+1))]...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// admit reports whether a line is for the server; what is no message is
// answered with an error of JSON-RPC.
func (d *drain) admit(line []byte) bool {
	text := bytes.TrimSpace(line)
	var m message
	switch {
	case len(text) == 0:
		return false
	case len(line) > maxFrame:
		return d.refuse(invalidRequest, fmt.Sprintf("a message has at most %d bytes", maxFrame))
	case !json.Valid(text):
		return d.refuse(parseError, "a message is one line of JSON")
	case text[0] == '[':
		if d.hasBatches() {
			return true
		}
		return d.refuse(invalidRequest, "this version of the protocol has no batches; send one message a line")
	case json.Unmarshal(text, &m) != nil || m.Version != "2.0" || !m.known():
		return d.refuse(invalidRequest, `a message is a JSON object with "jsonrpc":"2.0"`)
	}
	if m.Method != "" && m.request() {
		d.mu.Lock()
		d.open[string(m.ID)] = true
		d.mu.Unlock()
	}
	return true
}

func (d *drain) hasBatches() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.batches
}

// refuse answers a line that nobody can assign to a request.
func (d *drain) refuse(code int, why string) bool {
	reply, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	d.writing.Lock()
	defer d.writing.Unlock()
	_, _ = d.out.Write(append(reply, '\n'))
	return false
}

func (d *drain) wait() {
	timer := time.NewTimer(d.limit)
	defer timer.Stop()
	for {
		d.mu.Lock()
		left := len(d.open)
		d.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-d.changed:
		case <-timer.C:
			return
		}
	}
}

// Close ends the input.
func (d *drain) Close() error { return d.in.Close() }

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
}

// known reports whether a message is a request, a notification or a reply.
func (m message) known() bool {
	id := bytes.TrimSpace(m.ID)
	return (m.Method != "" || m.request()) && (len(id) == 0 || id[0] != '{' && id[0] != '[' && id[0] != 't' && id[0] != 'f')
}

// request reports whether a message has an id, so that a reply is due.
func (m message) request() bool { return m.ID != nil && string(m.ID) != "null" }

const maxNoted = 4 << 20 // a longer reply is not looked at

// replies notes every whole line of have and more, and returns the rest.
func (d *drain) replies(have, more []byte) []byte {
	have = append(have, more...)
	for {
		i := bytes.IndexByte(have, '\n')
		if i < 0 {
			if len(have) > maxNoted {
				return nil
			}
			return have
		}
		var m message
		if json.Unmarshal(have[:i], &m) == nil && m.Method == "" {
			delete(d.open, string(m.ID))
		}
		have = have[i+1:]
	}
}

type drainWriter struct{ d *drain }

func (d *drain) writer() io.WriteCloser { return drainWriter{d} }

// Write passes output on and notes the replies in it.
func (w drainWriter) Write(p []byte) (int, error) {
	// Before the client can know it: its next line may be a batch already.
	if bytes.Contains(p, []byte(`"protocolVersion":"2025-03-26"`)) {
		w.d.mu.Lock()
		w.d.batches = true
		w.d.mu.Unlock()
	}
	w.d.writing.Lock()
	n, err := w.d.out.Write(p)
	w.d.writing.Unlock()
	w.d.mu.Lock()
	w.d.lineOut = w.d.replies(w.d.lineOut, p[:n])
	w.d.mu.Unlock()
	select {
	case w.d.changed <- struct{}{}:
	default:
	}
	return n, err
}

func (w drainWriter) Close() error { return w.d.out.Close() }
