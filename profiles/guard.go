package profiles

import (
	"fmt"
	"strings"
)

// checkExec refuses a destination for which ssh could start a local program while it reads its files: Match exec in any
// file, in any block, unless an earlier criterion of the same line cannot hold for this destination. It runs before
// anything is started.
func (r *resolution) checkExec(d destination) error {
	if r.profile.AllowLocalCommands {
		return nil
	}
	hosts, certain := r.possibleHosts(d.host)
	var refused error
	r.files.each(func(l *sshLine) {
		if refused != nil {
			return
		}
		switch {
		case l.odd != "":
			refused = uncertain(l, l.odd)
		case l.key == "include" && l.unknown != "":
			refused = uncertain(l, l.unknown)
		case l.key == "match" && hasExec(l.raw) && !r.cannotRun(l, d.host, hosts, certain):
			refused = localCommand(l.at(), "Match exec")
		}
	})
	return refused
}

func uncertain(l *sshLine, why string) error {
	return &Error{Code: codeUnsupported, Message: fmt.Sprintf("%s: %s: it cannot be told whether ssh would start a program here", l.at(), why),
		Hint: "Write the line more plainly, name another file as ssh_config in the profile, or write allow_local_commands = true there."}
}

// localCommand is the refusal of a host whose configuration wants a local program.
func localCommand(at, what string) error {
	return configError("If you trust these files, write allow_local_commands = true in the profile. Otherwise name another file there as ssh_config.",
		"%s: %s would start a program on this machine, and the profile does not allow it", at, what)
}

// hasExec finds the criterion exec in however odd a spelling.
func hasExec(raw string) bool {
	lower := strings.ToLower(raw)
	for i := 0; ; {
		n := strings.Index(lower[i:], "exec")
		if n < 0 {
			return false
		}
		start, end := i+n, i+n+4
		if (start == 0 || !isWordByte(lower[start-1])) && (end == len(lower) || !isWordByte(lower[end])) {
			return true
		}
		i = end
	}
}

func isWordByte(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c == '.' }

// possibleHosts are all names that Match host could compare with: the destination and every HostName that may apply.
func (r *resolution) possibleHosts(alias string) (hosts []string, certain bool) {
	hosts, certain = []string{alias}, true
	r.files.eachFor(alias, func(l *sshLine, applies truth) {
		switch {
		case applies == no:
		case l.key == "hostname" && l.strange == "" && len(l.args) == 1:
			name, err := tokens{'h': alias, '%': "%"}.expand(l.args[0], nil)
			hosts = append(hosts, name)
			certain = certain && err == nil
		case l.key == "hostname" || strings.HasPrefix(l.key, "canonical"):
			certain = false
		}
	})
	return hosts, certain
}

// cannotRun proves that the criteria before exec do not all hold: ssh then skips the program.
func (r *resolution) cannotRun(l *sshLine, alias string, hosts []string, certain bool) bool {
	if l.strange != "" || strings.Contains(l.raw, "=") {
		return false
	}
	words := strings.Fields(l.raw)
	for i := 0; i+1 < len(words); i += 2 {
		name, value := strings.ToLower(words[i]), words[i+1]
		if strings.ContainsAny(value, "\"'\\#") {
			return false
		}
		switch name {
		case "originalhost":
			if !matchHostList(alias, value) {
				return true
			}
		case "host":
			if certain && !anyMatches(hosts, value) {
				return true
			}
		case "localuser":
			if !matchList(r.env.User, value) {
				return true
			}
		case "user":
		default:
			return false
		}
	}
	return false
}

func anyMatches(hosts []string, list string) bool {
	for _, h := range hosts {
		if matchHostList(h, list) {
			return true
		}
	}
	return false
}

// matchHostList compares a host name as Match does: in any letter case.
func matchHostList(host, list string) bool {
	return matchList(strings.ToLower(host), strings.ToLower(list))
}

// checkProven refuses the first line that the builtin resolver may not read. IgnoreUnknown counts only before any block,
// where it holds for every host.
func (r *resolution) checkProven() error {
	ignored := ""
	var walk func(f *sshFile, global bool) error
	walk = func(f *sshFile, global bool) error {
		for _, l := range f.lines {
			if why := unproven(l, ignored); why != "" {
				return &unprovenError{l.at(), why}
			}
			switch keywords[l.key].kind {
			case kindHost, kindMatch:
				global = false
			case kindIgnoreUnknown:
				if !global {
					return &unprovenError{l.at(), "IgnoreUnknown within a block"}
				}
				if ignored == "" {
					ignored = l.args[0]
				}
			}
			for _, inc := range l.included {
				if err := walk(inc, global); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, root := range r.files.roots {
		if err := walk(root, true); err != nil {
			return err
		}
	}
	return nil
}
