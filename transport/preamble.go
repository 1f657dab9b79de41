package transport

import (
	"bytes"
	"net"
	"sync"
)

// A preamble is a net.Conn that remembers what a server wrote before its SSH
// version: the reason why sshd, or something that is no sshd, closes.
type preamble struct {
	net.Conn
	mu    sync.Mutex
	text  []byte
	spoke bool
}

const maxPreamble = 256

func (c *preamble) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spoke || len(c.text) > maxPreamble {
		return n, err
	}
	c.text = append(c.text, b[:n]...)
	if bytes.HasPrefix(c.text, []byte("SSH-")) {
		c.spoke, c.text = true, nil
	} else if i := bytes.Index(c.text, []byte("\nSSH-")); i >= 0 {
		c.spoke, c.text = true, c.text[:i]
	}
	return n, err
}

// before returns at most 256 bytes of what came before the version, and whether
// the version came.
func (c *preamble) before() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.text[:min(len(c.text), maxPreamble)]), c.spoke
}
