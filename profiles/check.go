package profiles

import (
	"maps"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// profile checks one [profiles.NAME] table and fills in the defaults.
func (d *document) profile(name string, raw *rawProfile) (*Profile, error) {
	c := &checker{doc: d, at: []string{"profiles", name}}
	if name == "demo" {
		return nil, c.fail("", "this name is reserved for the built-in demo")
	}
	if !isBare(name) || len(name) > 64 {
		return nil, c.fail("", "a profile's name is 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if raw == nil {
		raw = &rawProfile{}
	}
	p := &Profile{
		Name: name, AllowLocalCommands: raw.AllowLocalCommands,
		Nodes:             c.destinations("nodes", raw.Nodes),
		DockerHosts:       c.destinations("docker_hosts", raw.DockerHosts),
		SSHUser:           c.user(raw.SSHUser),
		SSHConfig:         c.configPath(raw.SSHConfig),
		Resolver:          c.word("resolver", raw.Resolver, "auto", "builtin", "openssh"),
		Transport:         c.word("transport", raw.Transport, "ssh", "controlmaster"),
		Become:            c.word("become", raw.Become, "none", "sudo", "gate"),
		PermittedNetworks: c.networks(raw.PermittedNetworks),
		ConnectTimeout:    c.duration("connect_timeout", raw.ConnectTimeout, defaultConnectTimeout, 100*time.Millisecond, 5*time.Minute),
		Deadline:          c.duration("deadline", raw.Deadline, defaultDeadline, time.Second, time.Hour),
		Ignore:            c.ignore(raw.Ignore),
		Thresholds:        c.thresholds(raw.Thresholds),
	}
	if c.err == nil && len(p.Nodes)+len(p.DockerHosts) == 0 {
		c.fail("", "no host: it needs nodes or docker_hosts")
	}
	if c.err == nil && p.Deadline < p.ConnectTimeout {
		key := "deadline"
		if raw.Deadline == nil {
			key = "connect_timeout"
		}
		c.fail(key, "deadline (%s) is below connect_timeout (%s)", p.Deadline, p.ConnectTimeout)
	}
	if c.err != nil {
		return nil, c.err
	}
	return p, nil
}

// checker keeps the first mistake of one profile.
type checker struct {
	doc *document
	at  []string
	err error
}

func (c *checker) fail(key string, format string, args ...any) error {
	if c.err == nil {
		at := c.at
		if key != "" {
			at = append(slices.Clone(c.at), strings.Split(key, "\x00")...)
		}
		c.err = c.doc.fail(at, format, args...)
	}
	return c.err
}

func (c *checker) destinations(key string, in []string) []string {
	for i, s := range in {
		if _, err := parseDestination(s); err != nil {
			c.fail(key, "entry %d: %v", i+1, err)
		}
		if slices.Contains(in[:i], s) {
			c.fail(key, "entry %d: %s stands here twice", i+1, quoteName(s))
		}
	}
	return in
}

func (c *checker) user(in *string) string {
	if in == nil {
		return ""
	}
	if !validUser(*in) {
		c.fail("ssh_user", "%s is no user name", quoteName(*in))
	}
	return *in
}

func (c *checker) configPath(in *string) string {
	if in == nil {
		return ""
	}
	if !filepath.IsAbs(*in) && !strings.HasPrefix(*in, "~/") || hasControl(*in) {
		c.fail("ssh_config", "%s is neither absolute nor below ~/", quoteName(*in))
	}
	return *in
}

func (c *checker) word(key string, in *string, words ...string) string {
	if in == nil {
		return words[0]
	}
	if !slices.Contains(words, *in) {
		c.fail(key, "unknown word %s", quoteName(*in))
	}
	return *in
}

func (c *checker) duration(key string, in *string, preset, least, most time.Duration) time.Duration {
	if in == nil {
		return preset
	}
	d, err := time.ParseDuration(*in)
	if err != nil {
		c.fail(key, "%s is no duration", quoteName(*in))
	} else if d < least || d > most {
		c.fail(key, "%s is out of range", quoteName(*in))
	}
	return d
}

func (c *checker) networks(in []string) []netip.Prefix {
	var out []netip.Prefix
	for i, s := range in {
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			c.fail("permitted_networks", "entry %d: %s is no network", i+1, quoteName(s))
		case p.Addr().Is4In6():
			c.fail("permitted_networks", "entry %d: %s: write the IPv4 network", i+1, quoteName(s))
		case p.Masked() != p:
			c.fail("permitted_networks", "entry %d: %s has host bits set; the network is %s", i+1, quoteName(s), p.Masked())
		case p.Addr().Is4() && p.Bits() < 16, p.Addr().Is6() && p.Bits() < 64:
			c.fail("permitted_networks", "entry %d: %s is wider than /16 (IPv4) or /64 (IPv6)", i+1, quoteName(s))
		case p.Addr().IsMulticast(), p.Addr().IsLoopback():
			c.fail("permitted_networks", "entry %d: %s is no network of hosts", i+1, quoteName(s))
		case slices.Contains(out, p):
			c.fail("permitted_networks", "entry %d: %s stands here twice", i+1, quoteName(s))
		}
		out = append(out, p)
	}
	return out
}

// ignore checks the shape only: which codes exist is the catalogue's business.
func (c *checker) ignore(in []string) []string {
	for i, s := range in {
		code, segment, scoped := strings.Cut(s, ":")
		if !isCode(code) || scoped && (segment == "" || len(segment) > 128 || hasControl(segment) || strings.ContainsAny(segment, "/ ")) {
			c.fail("ignore", "entry %d: %s is neither CODE nor CODE:<last segment of the subject>", i+1, quoteName(s))
		}
		if slices.Contains(in[:i], s) {
			c.fail("ignore", "entry %d: %s stands here twice", i+1, quoteName(s))
		}
	}
	return in
}

func (c *checker) thresholds(in map[string]rawLimits) map[string]Limits {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]Limits, len(in))
	for _, code := range slices.Sorted(maps.Keys(in)) {
		limits := in[code]
		key := "thresholds\x00" + code
		if !isCode(code) {
			c.fail(key, "a finding's code is upper case, such as STORAGE_FULL")
		}
		if limits.Warning == nil && limits.Critical == nil {
			c.fail(key, "neither warning nor critical")
		}
		c.limit(key+"\x00warning", limits.Warning)
		c.limit(key+"\x00critical", limits.Critical)
		out[code] = Limits(limits)
	}
	return out
}

func (c *checker) limit(key string, v *float64) {
	if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0) || *v < 0) {
		c.fail(key, "%v is no limit", *v)
	}
}

func isCode(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !(r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_') }) < 0
}

func hasControl(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\uFFFD' }) >= 0
}
