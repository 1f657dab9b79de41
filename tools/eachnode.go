package tools

import (
	"errors"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// eachNode calls f at once for every node of a cluster that can be asked itself.
// For the others it returns why not; those that the cluster does not call
// offline, which offlineNodes says, leave the answer incomplete.
func (s *Session) eachNode(c *cluster, f func(node string, e *entry)) map[string]string {
	why := map[string]string{}
	nodes := c.nodes()
	reasons := make([]string, len(nodes))
	parallel(nodes, func(i int, node string) {
		e, err := c.at(node)
		if err != nil {
			reasons[i] = AsError(err).Message
			if !report.Offline(c.State, node) {
				s.miss(node, err)
			}
			return
		}
		f(node, e)
	})
	for i, node := range nodes {
		if reasons[i] != "" {
			why[node] = reasons[i]
		}
	}
	return why
}

// sitesOf are the nodes that a node argument chooses: one, or with "" all.
func (inv *inventory) sitesOf(arg string) ([]site, error) {
	if arg != "" {
		at, err := inv.node(arg)
		if err != nil {
			return nil, err
		}
		return []site{*at}, nil
	}
	var out []site
	for _, c := range inv.clusters {
		for _, n := range c.nodes() {
			out = append(out, site{c, n})
		}
	}
	return out, nil
}

// offlineSites says which of the nodes that were chosen by arg are offline.
func (s *Session) offlineSites(inv *inventory, sites []site, arg string) {
	if arg != "" {
		s.offlineNodes(sites[0].cluster, sites[0].node)
		return
	}
	for _, c := range inv.clusters {
		s.offlineNodes(c, "")
	}
}

// heard is what a slotless form told; ok is false when it could not be had, which
// leaves the answer incomplete.
type heard[T any] struct {
	value T
	ok    bool
	why   string
}

// tell runs a form and parses what it prints.
func tell[T any](s *Session, e *entry, form string, parser func([]byte) (T, []parse.Note, error), values ...string) heard[T] {
	return told(s, e, form, parser, s.miss, values...)
}

func told[T any](s *Session, e *entry, form string, parser func([]byte) (T, []parse.Note, error), problem func(string, error), values ...string) heard[T] {
	var out heard[T]
	text, err := s.ask(s.ctx, e, form, values...)
	if err == nil {
		var notes []parse.Note
		out.value, notes, err = parser(text)
		if err != nil {
			err = unread(form, err)
		} else {
			s.notes(e.name(), form, notes)
		}
	}
	if err != nil {
		problem(e.name(), err)
		out.why = AsError(err).Message
		return out
	}
	out.ok = true
	return out
}

// noNotes makes a parser that has no notes fit.
func noNotes[T any](parser func([]byte) (T, error)) func([]byte) (T, []parse.Note, error) {
	return func(b []byte) (T, []parse.Note, error) {
		v, err := parser(b)
		return v, nil, err
	}
}

var errNoMember = errors.New("no member could be asked")
