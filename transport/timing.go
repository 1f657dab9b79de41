package transport

import "time"

// timing holds every duration that is no user's choice.
type timing struct {
	alive    time.Duration // a connection that was silent this long is asked
	busy     time.Duration // the same while a command runs, and how often to look
	misses   int           // unanswered questions until a connection is dead
	check    time.Duration // answer to a question before a suspect connection is used
	idle     time.Duration // an unused connection is closed
	stuck    time.Duration // a session that does not open kills its connection
	orphan   time.Duration // beyond a form's limit, until an abandoned session is given up
	shrunk   time.Duration // a session that the server refused is tried again
	rest     time.Duration // first pause after a failed dial; doubles
	restMost time.Duration
	penalty  time.Duration // pause when sshd says that it penalises this address
	touch    time.Duration // how long the agent may wait for a person
	grace    time.Duration // beyond a form's limit on the node, for a slow .bashrc
}

var defaultTiming = timing{
	alive:    15 * time.Second,
	busy:     3 * time.Second,
	misses:   3,
	check:    2 * time.Second,
	idle:     10 * time.Minute,
	stuck:    30 * time.Second,
	orphan:   5 * time.Second,
	shrunk:   time.Minute,
	rest:     30 * time.Second,
	restMost: 5 * time.Minute,
	penalty:  time.Minute,
	touch:    20 * time.Second,
	grace:    10 * time.Second,
}
