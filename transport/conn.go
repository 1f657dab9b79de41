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
	cn := &conn{
		pool: p, client: client, parent: parent, master: r.target.ControlPath != "",
		slots: make(chan struct{}, maxSessions), closed: make(chan struct{}),
		every: p.time.alive, misses: p.time.misses, heard: now, used: now,
	}
	if t := r.target; t.ServerAliveInterval > 0 {
		cn.every = t.ServerAliveInterval
		if t.ServerAliveCountMax > 0 {
			cn.misses = t.ServerAliveCountMax
		}
	}
	cn.shell.known = make(chan struct{})
	go cn.wait()
	go cn.watch()
	return cn
}

// hold keeps the connection open; false says that it has ended.
func (cn *conn) hold() bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.gone {
		return false
	}
	cn.users++
	return true
}

func (cn *conn) release() {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.users--
	cn.used = time.Now()
	if cn.gone && cn.users == 0 {
		go cn.client.Close()
	}
}

// wait marks the connection as ended when it has.
func (cn *conn) wait() {
	cn.client.Wait()
	cn.mu.Lock()
	cn.gone = true
	cn.mu.Unlock()
	close(cn.closed)
	if cn.parent != nil {
		cn.parent.release()
	}
}

func (cn *conn) close(cause error) {
	cn.mu.Lock()
	cn.gone = true
	cn.mu.Unlock()
	cn.pool.opt.Log.Debug("connection closed", "cause", cause)
	cn.client.Close()
}

// watch asks a silent node whether it lives, and ends what is dead or unused.
func (cn *conn) watch() {
	tick := time.NewTicker(min(cn.pool.time.busy, cn.every))
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-cn.closed:
			return
		case <-tick.C:
		}
		cn.mu.Lock()
		quiet, unused, users := time.Since(cn.heard), time.Since(cn.used), cn.users
		cn.mu.Unlock()
		switch {
		case users == 0 && unused > cn.pool.time.idle:
			cn.close(errIdle)
			return
		case cn.master || users == 0 && quiet < cn.every:
			continue
		case cn.answers(min(cn.pool.time.busy, cn.every)):
			missed = 0
		default:
			if missed++; missed >= cn.misses {
				cn.close(errSilent)
				return
			}
		}
	}
}

// usable checks a connection on which a command went unanswered, or that was
// silent for long (the machine slept), before it is used again.
func (cn *conn) usable() bool {
	cn.mu.Lock()
	check := !cn.master && (cn.suspect || time.Since(cn.heard) > 2*cn.every)
	cn.mu.Unlock()
	if !check || cn.answers(cn.pool.time.check) {
		return true
	}
	cn.close(errSilent)
	return false
}

// answers reports whether the node answers a keepalive within limit. Questions
// on one connection queue, so a second caller waits for the first one's.
func (cn *conn) answers(limit time.Duration) bool {
	cn.mu.Lock()
	if cn.asked == nil {
		cn.asked = make(chan struct{})
		go cn.ask(cn.asked)
	}
	asked := cn.asked
	cn.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-asked:
		return true
	case <-cn.closed:
	case <-timer.C:
	}
	return false
}

func (cn *conn) ask(answered chan struct{}) {
	if _, _, err := cn.client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		return // the connection has ended
	}
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.heard, cn.suspect, cn.asked = time.Now(), false, nil
	close(answered)
}

func (cn *conn) doubt() {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.suspect = true
}

// retire gives the connection to no new user, and ends it when its last one has
// left.
func (cn *conn) retire() {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.gone = true
	if cn.users == 0 {
		go cn.client.Close()
	}
}

// shrink gives the caller's slot up, unless it is the last.
func (cn *conn) shrink() bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.fewer == maxSessions-1 {
		return false
	}
	cn.fewer++
	return true
}

func (cn *conn) grow() {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.fewer--
	give(cn.slots)
}
