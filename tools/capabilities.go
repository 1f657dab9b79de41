package tools

import (
	"cmp"
	"context"
	"slices"

	"pvelens/allowlist"
	"pvelens/tools/report"
)

type capabilitiesIn struct{ Common }

var capabilities = define("capabilities", "Show what can be asked",
	"Says what this pvelens can ask: its tools, the allowlist's hash, and for each host how far its rights reach (root, sudo, gate, www-data, any), which commands do not work with them and what each would tell.",
	func(_ context.Context, s *Session, _ capabilitiesIn) (*report.Capabilities, error) {
		out := &report.Capabilities{Version: s.env.Version, AllowlistSHA256: allowlist.Hash(), ReadOnly: true, Tools: s.env.Tools, Profiles: s.env.profileNames(s.Profile.Name), Items: []report.Access{}}
		hosts := slices.Concat(s.nodes, s.dockers)
		rows := make([]report.Access, len(hosts))
		parallel(hosts, func(i int, e *entry) { rows[i] = s.access(e) })
		slices.SortFunc(rows, func(a, b report.Access) int { return cmp.Compare(a.SSHDestination, b.SSHDestination) })
		out.Items = append(out.Items, rows...)
		return out, nil
	})

// access finds out how far the rights on a host reach, by reading.
func (s *Session) access(e *entry) report.Access {
	a := report.Access{SSHDestination: e.dest, Role: string(e.role), Missing: []report.MissingForm{}}
	r, err := s.rights(e)
	if err != nil {
		s.miss(e.dest, err)
		a.Level = "none"
	}
	a.Node, _, _ = e.learned()
	for _, f := range allowlist.Forms() {
		if f.Role != e.role && f.Role != allowlist.Both || f.ClientOnly() || f.ID == "gate-version" {
			continue
		}
		a.FormsTotal++
		if err != nil {
			continue // the problem says why; no form is missing for want of rights
		}
		if r.covers(f) {
			a.FormsWorking++
			continue
		}
		a.Missing = append(a.Missing, report.MissingForm{Form: f.ID, Needs: string(f.Rights), Gives: f.Why})
	}
	if a.Level == "" {
		a.Level = s.level(r)
	}
	return a
}

// A reach is how far the rights on a host go, and why no further.
type reach struct {
	files, root bool
	why         *Error
}

func (r reach) covers(f allowlist.Form) bool {
	return f.Rights == allowlist.Any || f.Rights == allowlist.WWWData && r.files || f.Rights == allowlist.Root && r.root
}

func (s *Session) level(r reach) string {
	switch {
	case r.root && s.Profile.Become != "none":
		return s.Profile.Become
	case r.root:
		return "root"
	case r.files:
		return "www-data"
	}
	return "any"
}

// rights tries one harmless form of each kind: echo, a read of the cluster's
// state, and pvestatd's log. An error means that not even echo works, or that a
// form fails for another reason than rights.
func (s *Session) rights(e *entry) (r reach, err error) {
	if _, err := s.ask(s.ctx, e, "probe"); err != nil {
		return r, err
	}
	if e.role == allowlist.Docker {
		out, err := s.exec(s.ctx, e, "host-docker-version")
		if err != nil && AsError(err).Code == report.PermissionDenied {
			r.why = AsError(err)
		}
		r.root = err == nil && out.Exit == 0
		return r, nil
	}
	if err := s.arrive(e, 0).err; err != nil {
		if r.why = AsError(err); r.why.Code != report.PermissionDenied {
			return r, err
		}
		return r, nil
	}
	r.files = true
	host, err := s.host(s.ctx, e)
	if err != nil {
		return r, err
	}
	if host.Become == allowlist.AsIs {
		r.root = host.Target.User == "root"
		return r, nil
	}
	if _, err = s.ask(s.ctx, e, "storage-reasons"); err == nil {
		r.root = true
		return r, nil
	}
	if r.why = AsError(err); r.why.Code != report.PermissionDenied && r.why.Code != report.Unsupported {
		return r, err
	}
	return r, nil
}
