package transport

import (
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// A conn is one live connection to a node.
type conn struct {
	pool   *Pool
	client *ssh.Client
	parent *conn         // the bastion's connection, held while this one lives
	master bool          // an OpenSSH master's, which answers no keepalive
	slots  chan struct{} // a token for each session in flight
	closed chan struct{} // closed when the connection has ended
	shell  shell
	every  time.Duration // a silence after which the node is asked
	misses int

	mu      sync.Mutex
	users   int // callers and child connections that hold it
	gone    bool
	suspect bool          // a command got no answer
	asked   chan struct{} // closed when the question under way was answered
	heard   time.Time
	used    time.Time
	fewer   int // slots given up for a while
}

func newConn(p *Pool, r *route, client *ssh.Client, parent *conn) *conn {
	now := time.Now()
	c := &conn{
		pool: p, client: client, parent: parent, master: r.target.ControlPath != "",
		slots: make(chan struct{}, maxSessions), closed: make(chan struct{}),
		every: p.time.alive, misses: p.time.misses, heard: now, used: now,
	}
	if t := r.target; t.ServerAliveInterval > 0 {
		c.every = t.ServerAliveInterval
		if t.ServerAliveCountMax > 0 {
			c.misses = t.ServerAliveCountMax
		}
	}
	c.shell.known = make(chan struct{})
	go c.wait()
	go c.watch()
	return c
}

// hold keeps the connection open; false says that it has ended.
func (c *conn) hold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return false
	}
	c.users++
	return true
}

func (c *conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.used = time.Now()
	if c.gone && c.users == 0 {
		go c.client.Close()
	}
}

// wait marks the connection as ended when it has.
func (c *conn) wait() {
	c.client.Wait()
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	close(c.closed)
	if c.parent != nil {
		c.parent.release()
	}
}

func (c *conn) close(cause error) {
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.pool.opt.Log.Debug("connection closed", "cause", cause)
	c.client.Close()
}

// watch asks a silent node whether it lives, and ends what is dead or unused.
func (c *conn) watch() {
	tick := time.NewTicker(min(c.pool.time.busy, c.every))
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-c.closed:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		quiet, unused, users := time.Since(c.heard), time.Since(c.used), c.users
		c.mu.Unlock()
		switch {
		case users == 0 && unused > c.pool.time.idle:
			c.close(errIdle)
			return
		case c.master || users == 0 && quiet < c.every:
			continue
		case c.answers(min(c.pool.time.busy, c.every)):
			missed = 0
		default:
			if missed++; missed >= c.misses {
				c.close(errSilent)
				return
			}
		}
	}
}

// usable checks a connection on which a command went unanswered, or that was
// silent for long (the machine slept), before it is used again.
func (c *conn) usable() bool {
	c.mu.Lock()
	check := !c.master && (c.suspect || time.Since(c.heard) > 2*c.every)
	c.mu.Unlock()
	if !check || c.answers(c.pool.time.check) {
		return true
	}
	c.close(errSilent)
	return false
}

// answers reports whether the node answers a keepalive within limit. Questions
// on one connection queue, so a second caller waits for the first one's.
func (c *conn) answers(limit time.Duration) bool {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = make(chan struct{})
		go c.ask(c.asked)
	}
	asked := c.asked
	c.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-asked:
		return true
	case <-c.closed:
	case <-timer.C:
	}
	return false
}

func (c *conn) ask(answered chan struct{}) {
	if _, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		return // the connection has ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard, c.suspect, c.asked = time.Now(), false, nil
	close(answered)
}

func (c *conn) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspect = true
}

// retire gives the connection to no new user, and ends it when its last one has
// left.
func (c *conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.users == 0 {
		go c.client.Close()
	}
}

// shrink gives the caller's slot up, unless it is the last.
func (c *conn) shrink() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fewer == maxSessions-1 {
		return false
	}
	c.fewer++
	return true
}

func (c *conn) grow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fewer--
	give(c.slots)
}
