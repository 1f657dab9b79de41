package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A node is one route and its connection, if any. Callers that come while a dial
// is under way share it.
type node struct {
	pool  *Pool
	route *route
	dials chan struct{} // a token for each dial in flight through this bastion

	mu      sync.Mutex
	conn    *conn
	dialing *dialing
	rest    rest
}

// A dialing is a dial under way. It is cancelled when nobody waits any more.
type dialing struct {
	done    chan struct{} // closed after conn and err are set
	cancel  context.CancelFunc
	waiters int
	conn    *conn
	err     error
}

// connect returns a live connection, held for the caller, who releases it.
func (n *node) connect(ctx context.Context) (*conn, error) {
	for {
		n.mu.Lock()
		if n.conn != nil && n.conn.hold() {
			defer n.mu.Unlock()
			return n.conn, nil
		}
		if err := n.rest.refuse(n.pool.opt.Now()); err != nil {
			n.mu.Unlock()
			return nil, err
		}
		d, err := n.join()
		n.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-d.done:
		case <-ctx.Done():
		}
		if !n.leave(d) {
			return nil, ended(ctx, "connecting to "+n.route.address())
		}
		if d.err != nil {
			return nil, d.err
		}
		if d.conn.hold() {
			return d.conn, nil
		}
	}
}

// join returns the dial under way, or starts one. The caller holds n.mu.
func (n *node) join() (*dialing, error) {
	if n.dialing != nil {
		n.dialing.waiters++
		return n.dialing, nil
	}
	p := n.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, closedError()
	}
	ctx, cancel := context.WithCancel(p.ctx)
	d := &dialing{done: make(chan struct{}), cancel: cancel, waiters: 1}
	n.dialing = d
	p.work.Go(func() { n.work(ctx, d) })
	return d, nil
}

func (n *node) work(ctx context.Context, d *dialing) {
	defer d.cancel()
	c, err := n.pool.dial(ctx, n.route)
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted := n.dialing == d // else nobody waits for it any more
	if wanted {
		n.dialing = nil
		n.rest.note(n.pool, err)
	}
	switch {
	case err != nil:
	case wanted && n.pool.ctx.Err() == nil:
		n.conn = c
	default:
		c.close(errClosed)
		err = closedError()
	}
	d.conn, d.err = c, err
	close(d.done)
}

// leave reports whether d is over; the last one to leave before ends it.
func (n *node) leave(d *dialing) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	d.waiters--
	select {
	case <-d.done:
		return true
	default:
	}
	if d.waiters == 0 {
		d.cancel()
		if n.dialing == d {
			n.dialing = nil
		}
	}
	return false
}

func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil {
		n.conn.close(errClosed)
	}
}

// A rest is the pause after failed dials: a dead node costs nothing, and an sshd
// that counts failures is not provoked.
type rest struct {
	failures int
	until    time.Time
	err      *Error
}

// refuse returns the error of the last dial while the pause lasts.
func (r *rest) refuse(now time.Time) error {
	if r.err == nil || !now.Before(r.until) {
		return nil
	}
	e := *r.err
	e.Message += fmt.Sprintf(" (not asked again for %s)", seconds(r.until.Sub(now)))
	return &e
}

// note starts, lengthens or ends the pause after a dial.
func (r *rest) note(p *Pool, err error) {
	if err == nil {
		*r = rest{}
		return
	}
	var f *dialFailure
	e, pause := asDialFailure(err, &f), time.Duration(0)
	switch {
	case f == nil:
		return // this side's doing, or the bastion's own pause
	case f.penalised:
		pause = p.time.penalty
	case e.Code == Unreachable, e.Code == Timeout, e.Code == AuthFailed:
		pause = p.time.rest
	default:
		return
	}
	pause = min(pause<<min(r.failures, 8), p.time.restMost)
	pause += rand.N(pause/10 + 1) // many nodes do not come back in one instant
	r.failures++
	r.until, r.err = p.opt.Now().Add(pause), e
}
