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
	files, root, err := s.rights(e)
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
		if err == nil && (f.Rights == allowlist.Any || f.Rights == allowlist.WWWData && files || f.Rights == allowlist.Root && root) {
			a.FormsWorking++
			continue
		}
		a.Missing = append(a.Missing, report.MissingForm{Form: f.ID, Needs: string(f.Rights), Gives: f.Why})
	}
	if a.Level == "" {
		a.Level = s.level(files, root)
	}
	return a
}

func (s *Session) level(files, root bool) string {
	switch {
	case root && s.Profile.Become != "none":
		return s.Profile.Become
	case root:
		return "root"
	case files:
		return "www-data"
	}
	return "any"
}

// rights tries one harmless form of each kind: echo, a read of the cluster's
// state, and pvestatd's log.
func (s *Session) rights(e *entry) (files, root bool, err error) {
	if _, err := s.ask(s.ctx, e, "probe"); err != nil {
		return false, false, err
	}
	if e.role == allowlist.Docker {
		out, err := s.exec(s.ctx, e, "host-docker-version")
		return false, err == nil && out.Exit == 0, nil
	}
	a := s.arrive(e, 0)
	if a.err != nil {
		if AsError(a.err).Code != report.PermissionDenied {
			return false, false, a.err
		}
		return false, false, nil
	}
	if host, err := s.host(s.ctx, e); err == nil && host.Become == allowlist.AsIs {
		return true, host.Target.User == "root", nil
	}
	_, err = s.ask(s.ctx, e, "storage-reasons")
	if err != nil && AsError(err).Code != report.PermissionDenied && AsError(err).Code != report.Unsupported {
		return true, false, err
	}
	return true, err == nil, nil
}
