package transport

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A knownKey is one line of a known_hosts file.
type knownKey struct {
	marker   string // "", "cert-authority" or "revoked"
	patterns []string
	key      ssh.PublicKey
	file     string
	line     int
	portless bool // of this host, but only under its name without the port
}

func (k knownKey) where() string { return fmt.Sprintf("%s:%d", k.file, k.line) }

// A hostKeys is what the known_hosts files say about one host. Checking is
// always strict: an unknown key is an error, and nothing is ever written.
type hostKeys struct {
	names   []string   // what is looked up: the name with its port, then without
	keys    []knownKey // of this host, those under the name with the port first
	revoked []knownKey // of any host
	looked  []string   // the files, as shown to people
	add     string     // the file that a new line belongs into
}

// knownHosts reads the files anew for each dial, so that a mended file counts at
// once. Files that do not exist are as good as empty.
func (p *Pool) knownHosts(ctx context.Context, r *route) (*hostKeys, error) {
	t, home := r.target, p.opt.Getenv("HOME")
	h := &hostKeys{names: namesOf(t.HostName, t.Port, t.HostKeyAlias)}
	var all []knownKey
	if r.knownHosts != nil {
		all = parseKnownHosts(r.knownHosts, "known_hosts")
		h.looked, h.add = []string{"known_hosts"}, "known_hosts"
	} else {
		for _, path := range append(append([]string{}, t.UserKnownHosts...), t.GlobalKnownHosts...) {
			if path == "none" {
				continue
			}
			b, err := os.ReadFile(path)
			shown := tilde(path, home)
			if h.add == "" {
				h.add = shown
			}
			if err != nil && !os.IsNotExist(err) {
				shown += " (unreadable)"
			} else if err != nil {
				shown += " (missing)"
			}
			h.looked = append(h.looked, shown)
			all = append(all, parseKnownHosts(b, tilde(path, home))...)
		}
	}
	if t.KnownHostsCommand != "" {
		b, err := knownHostsCommand(ctx, t.KnownHostsCommand, h.names[0])
		if err != nil {
			return nil, err
		}
		h.looked = append(h.looked, "KnownHostsCommand")
		all = append(all, parseKnownHosts(b, "KnownHostsCommand")...)
	}
	if err := h.revoke(t.RevokedHostKeys, home); err != nil {
		return nil, err
	}
	h.choose(all)
	return h, nil
}

// namesOf returns the names that OpenSSH looks up, in its order. An alias is
// looked up as it is.
func namesOf(host string, port int, alias string) []string {
	if alias != "" {
		return []string{strings.ToLower(alias)}
	}
	host = strings.ToLower(host)
	if port == 22 {
		return []string{host}
	}
	return []string{"[" + host + "]:" + strconv.Itoa(port), host}
}

// choose keeps the lines of this host. As with OpenSSH, a line under the name
// without the port can make a host known, but not changed.
func (k *hostKeys) choose(all []knownKey) {
	for i, name := range k.names {
		for _, l := range all {
			switch {
			case l.marker == "revoked" && i == 0:
				k.revoked = append(k.revoked, l)
			case l.marker != "revoked" && l.matches(name):
				l.portless = i > 0
				k.keys = append(k.keys, l)
			}
		}
	}
}

// revoke adds the keys of a RevokedHostKeys file. One that cannot be read, or is
// a binary revocation list, stops everything, as with OpenSSH.
func (k *hostKeys) revoke(path, home string) error {
	if path == "" || path == "none" {
		return nil
	}
	shown := tilde(path, home)
	b, err := os.ReadFile(path)
	if err != nil {
		return &Error{Code: Config, Message: "RevokedHostKeys " + shown + " cannot be read", Hint: "correct the path, or remove the line from ssh_config"}
	}
	if bytes.HasPrefix(b, []byte("SSHKRL\n\x00")) {
		return &Error{Code: Unsupported, Message: "RevokedHostKeys " + shown + " is a binary revocation list (KRL)", Hint: "list the revoked keys as text, one public key a line"}
	}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return &Error{Code: Config, Message: fmt.Sprintf("RevokedHostKeys %s:%d: want a public key", shown, i+1), Hint: "correct the line; until then no host key is trusted"}
		}
		k.revoked = append(k.revoked, knownKey{marker: "revoked", key: key, file: shown, line: i + 1})
	}
	return nil
}

// parseKnownHosts returns the lines that can be read; others are skipped, as
// OpenSSH does: they can only make a host unknown.
func parseKnownHosts(b []byte, file string) []knownKey {
	var out []knownKey
	n := 0
	for line := range bytes.Lines(b) {
		n++
		marker, hosts, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil || len(hosts) == 0 {
			continue
		}
		out = append(out, knownKey{marker: marker, patterns: hosts, key: key, file: file, line: n})
	}
	return out
}

// matches reports whether the line is for name: a hashed name, or patterns with
// * and ?, where one negated match rules the line out.
func (k knownKey) matches(name string) bool {
	found := false
	for _, p := range k.patterns {
		if strings.HasPrefix(p, "|") {
			found = found || hashedMatch(p, name)
			continue
		}
		plain, negated := strings.CutPrefix(strings.ToLower(p), "!")
		if !wildcard(plain, name) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// hashedMatch compares a |1|salt|hash| name.
func hashedMatch(pattern, name string) bool {
	parts := strings.Split(pattern, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return false
	}
	salt, err1 := base64.StdEncoding.DecodeString(parts[2])
	want, err2 := base64.StdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt) // the format's own hash; it hides names, it proves nothing
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}

// wildcard matches * and ? over all bytes, in time linear in both for each star.
func wildcard(pattern, s string) bool {
	star, mark, i, j := -1, 0, 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
