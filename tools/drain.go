package tools

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A drain stands between a client and the server. It counts requests and
// replies, and tells the server that the input has ended only when every
// request has its reply: otherwise the replies to a client that writes, closes
// its end and then reads would be lost.
type drain struct {
	in    io.ReadCloser
	out   io.WriteCloser
	limit time.Duration

	mu      sync.Mutex
	open    map[string]bool // ids of requests without a reply
	changed chan struct{}
	lineIn  []byte
	lineOut []byte
}

func newDrain(in io.ReadCloser, out io.WriteCloser, limit time.Duration) *drain {
	return &drain{in: in, out: out, limit: limit, open: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// Read passes input on and notes the requests in it.
func (d *drain) Read(p []byte) (int, error) {
	n, err := d.in.Read(p)
	d.mu.Lock()
	d.lineIn = d.lines(d.lineIn, p[:n], func(m message) {
		if m.Method != "" && m.ID != nil {
			d.open[string(m.ID)] = true
		}
	})
	d.mu.Unlock()
	if err == io.EOF && n == 0 {
		d.wait()
	}
	if n > 0 && err == io.EOF {
		err = nil // the end comes with the next call
	}
	return n, err
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
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

const maxNoted = 4 << 20 // a longer line is not looked at

// lines calls f for every whole line of have and more, and returns the rest.
func (d *drain) lines(have, more []byte, f func(message)) []byte {
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
		if json.Unmarshal(have[:i], &m) == nil {
			f(m)
		}
		have = have[i+1:]
	}
}

type drainWriter struct{ d *drain }

func (d *drain) writer() io.WriteCloser { return drainWriter{d} }

// Write passes output on and notes the replies in it.
func (w drainWriter) Write(p []byte) (int, error) {
	n, err := w.d.out.Write(p)
	w.d.mu.Lock()
	w.d.lineOut = w.d.lines(w.d.lineOut, p[:n], func(m message) {
		if m.Method == "" {
			delete(w.d.open, string(m.ID))
		}
	})
	w.d.mu.Unlock()
	select {
	case w.d.changed <- struct{}{}:
	default:
	}
	return n, err
}

func (w drainWriter) Close() error { return w.d.out.Close() }
