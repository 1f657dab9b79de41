package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pvelens/allowlist"
	"pvelens/tools/report"
	"pvelens/transport"
)

// Diagnose looks at every host of a profile: what ssh_config makes of it, and,
// unless resolveOnly, whether login, shell, rights, gate and forms are in order.
// It reads only; nothing that could change a node is sent, not even as a test.
func Diagnose(ctx context.Context, env *Env, profile string, resolveOnly bool) (*report.Doctor, error) {
	s, err := env.open(ctx, Common{Profile: profile, Detail: "detailed"})
	if err != nil {
		return nil, err
	}
	defer s.close()
	hosts := slices.Concat(s.nodes, s.dockers)
	out := &report.Doctor{Nodes: make([]report.Checkup, len(hosts))}
	parallel(hosts, func(i int, e *entry) {
		out.Nodes[i] = s.checkup(e, resolveOnly)
		s.progress(i+1, len(hosts), "%s", e.dest)
	})
	s.finish(out.Head())
	out.Sources = nil
	for _, n := range out.Nodes {
		if !n.OK() {
			out.Complete = false
		}
	}
	return out, nil
}

func (s *Session) checkup(e *entry, resolveOnly bool) report.Checkup {
	c := report.Checkup{Name: e.dest, Role: string(e.role), IdentityFiles: []string{}, ProxyJump: []string{}, Steps: []report.Step{}, Missing: []report.MissingForm{}}
	host, err := s.host(s.ctx, e)
	if err != nil {
		bad := AsError(err)
		c.Refused = bad.Message
		c.Add("ssh_config", report.Fail, bad.Message, bad.Hint)
		return c
	}
	t := host.Target
	c.HostName, c.User, c.Port, c.Resolver = t.HostName, t.User, t.Port, t.Resolver
	c.IdentityFiles = append(c.IdentityFiles, t.IdentityFiles...)
	for _, hop := range t.ProxyJump {
		c.ProxyJump = append(c.ProxyJump, hop.Name)
	}
	c.Add("ssh_config", report.OK, fmt.Sprintf("%s@%s port %d, resolved by %s", t.User, t.HostName, t.Port, t.Resolver), "")
	for _, note := range t.Notes {
		c.Add("ssh_config", report.Warn, note, "")
	}
	if !resolveOnly {
		s.examine(&c, e, host)
	}
	return c
}

// examine goes from the login to the forms; a step that fails ends it, since
// nothing after it can work.
func (s *Session) examine(c *report.Checkup, e *entry, host *transport.Host) {
	out, err := s.exec(s.ctx, e, "probe")
	if err == nil {
		if bad := failure(out); bad != nil {
			err = bad
		}
	}
	if err != nil {
		bad := AsError(err)
		c.Add("login", report.Fail, string(bad.Code)+": "+bad.Message, bad.Hint)
		return
	}
	c.Add("login", report.OK, "host key known, key accepted", "")
	if out.Noise {
		c.Add("shell", report.Warn, "the login shell prints text before a command's output; it is taken off", "make .bashrc and the like silent when there is no terminal: it also costs time at each command")
	} else {
		c.Add("shell", report.OK, "silent", "")
	}
	r, err := s.rights(e)
	if err != nil {
		bad := AsError(err)
		c.Add("rights", report.Fail, string(bad.Code)+": "+bad.Message, bad.Hint)
		return
	}
	c.Node, _, _ = e.learned()
	s.lock(c, e, host)
	c.Level = s.level(r)
	s.say(c, e, r)
	s.forms(c, e, r)
}

// say tells how far the rights reach, and the way further.
func (s *Session) say(c *report.Checkup, e *entry, r reach) {
	why := &Error{Hint: "what is missing is listed below; `pvelens gate install-script` gives it without a root login"}
	if r.why != nil {
		why = r.why
		why.Message = ": " + why.Message
	}
	switch {
	case r.root && c.Level == "root":
		c.Add("rights", report.OK, "root", "")
	case r.root:
		c.Add("rights", report.OK, "root, through "+map[string]string{"sudo": "sudo", "gate": "the gate"}[c.Level], "")
	case r.files:
		c.Add("rights", report.Warn, "www-data: files of the cluster, but no root"+why.Message, why.Hint)
	case e.role == allowlist.Docker:
		c.Add("rights", report.Warn, "Docker does not answer this user"+why.Message, "put the user into the group docker (it is as strong as root), or log in as root")
	default:
		c.Add("rights", report.Fail, "the files under /etc/pve may not be read"+why.Message, why.Hint)
	}
}

// gateVersion is what the gate prints of itself.
type gateVersion struct {
	Version string            `json:"version"`
	SHA256  string            `json:"allowlist_sha256"`
	Forms   map[string]string `json:"forms"`
}

// lock finds out whether a gate stands on the node, and whether its table is
// ours. The one form that a gate refuses by design does nothing where there is
// none.
func (s *Session) lock(c *report.Checkup, e *entry, host *transport.Host) {
	out, err := s.exec(s.ctx, e, "lock-probe")
	switch {
	case err != nil:
		bad := AsError(err)
		c.Add("gate", report.Warn, string(bad.Code)+": "+bad.Message, bad.Hint)
		return
	case out.Exit == 0 && host.Become == allowlist.ViaGate:
		c.Add("gate", report.Fail, "become = \"gate\", but this key reaches a shell: there is no lock on the node", "`pvelens gate install-script` prints what to run there")
		return
	case out.Exit == 0:
		c.Add("gate", report.OK, "none: the allowlist is enforced on this side only", "")
		return
	}
	b, err := s.ask(s.ctx, e, "gate-version")
	if err != nil {
		c.Add("gate", report.Warn, "a lock refuses what it should, but does not tell its version", AsError(err).Message)
		return
	}
	var v gateVersion
	if json.Unmarshal(b, &v) != nil || v.SHA256 == "" {
		c.Add("gate", report.Warn, "the gate's version cannot be read", "install the gate of this release")
		return
	}
	if v.SHA256 == allowlist.Hash() {
		c.Add("gate", report.OK, "locked: the gate "+report.Clean(v.Version)+" has the same table", "")
		return
	}
	var differ []string
	for _, f := range allowlist.Forms() {
		if v.Forms[f.ID] != allowlist.FormHash(f) {
			differ = append(differ, f.ID)
		}
	}
	for id := range v.Forms {
		if _, ok := formByID[id]; !ok {
			differ = append(differ, report.Clean(id))
		}
	}
	slices.Sort(differ)
	c.Add("gate", report.Warn, "locked, but the gate "+report.Clean(v.Version)+" has another table; forms that differ: "+strings.Join(differ, ", "), "install the gate of this release")
}

// forms tries every form that needs no value, starts no Perl and has no effect;
// of the others it says what rights they need.
func (s *Session) forms(c *report.Checkup, e *entry, r reach) {
	var try []allowlist.Form
	for _, f := range allowlist.Forms() {
		if f.Role != e.role && f.Role != allowlist.Both || f.ClientOnly() || f.ID == "gate-version" || f.ID == "probe" {
			continue
		}
		c.FormsTotal++
		switch {
		case !r.covers(f):
			c.Missing = append(c.Missing, report.MissingForm{Form: f.ID, Needs: string(f.Rights), Gives: f.Why})
		case f.Effect == allowlist.None && plain(f):
			try = append(try, f)
		default:
			c.FormsWorking++
		}
	}
	missing := make([]*report.MissingForm, len(try))
	parallel(try, func(i int, f allowlist.Form) {
		if _, err := s.ask(s.ctx, e, f.ID); err != nil && AsError(err).Code != report.NotFound {
			missing[i] = &report.MissingForm{Form: f.ID, Needs: AsError(err).Message, Gives: f.Why}
		}
	})
	for _, m := range missing {
		if m == nil {
			c.FormsWorking++
			continue
		}
		c.Missing = append(c.Missing, *m)
	}
}

// plain reports whether a form has no slot and starts no Perl and no container
// runtime.
func plain(f allowlist.Form) bool {
	for _, w := range f.Argv {
		if len(slotsIn(w)) > 0 {
			return false
		}
	}
	return !slices.Contains([]string{"/usr/bin/pvesh", "/usr/sbin/pct", "/usr/sbin/qm", "docker", "podman"}, f.Argv[0])
}
