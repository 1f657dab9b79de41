// Package profiles answers where pvelens connects to, and as whom.
//
// It reads two kinds of files and writes one. profiles.toml is ours: strict, every mistake is an error that names file,
// line, key and the right form. ssh_config is OpenSSH's: the answer of a [Resolver] is what ssh itself would do, or a
// refusal that names file and line; it is never silently different. No local program other than ssh -G is ever started
// here, and none at all before every configuration file that ssh would read has been searched for Match exec.
package profiles

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Limits are the two limits of one finding, in the unit of the catalogue; nil keeps the catalogue's own.
type Limits struct{ Warning, Critical *float64 }

// Profile is one [profiles.NAME] table, checked, with the defaults filled in.
type Profile struct {
	Name string
	// Nodes and DockerHosts are SSH destinations: host, user@host or ssh://user@host:port.
	Nodes, DockerHosts []string
	// SSHUser wins over ssh_config, as ssh -l does; "" leaves it to OpenSSH.
	SSHUser string
	// SSHConfig replaces OpenSSH's user and system files, as ssh -F does; "" uses them. Absolute, or begins with ~/.
	SSHConfig string
	// Resolver is auto, builtin or openssh.
	Resolver string
	// AllowLocalCommands permits ProxyCommand, KnownHostsCommand and Match exec.
	AllowLocalCommands bool
	// Transport is ssh or controlmaster; Become is none, sudo or gate.
	Transport, Become string
	// PermittedNetworks are the networks whose addresses may be checked, masked; none means no address may.
	PermittedNetworks []netip.Prefix
	// ConnectTimeout is for one connection, Deadline for one tool call.
	ConnectTimeout, Deadline time.Duration
	// Ignore holds CODE or CODE:<last segment of the subject>.
	Ignore []string
	// Thresholds by finding code; whether a code exists is the catalogue's business.
	Thresholds map[string]Limits
}

// Config is one profiles.toml.
type Config struct {
	Path, Default string
	Profiles      map[string]*Profile
}

// Error is a failure that the user can repair. Code is CONFIG, UNSUPPORTED, INVALID_ARGUMENT or NOT_FOUND; Message says
// what is wrong and where, Hint what to do next.
type Error struct{ Code, Message, Hint string }

func (e *Error) Error() string { return e.Message }

// The codes of Error.
const (
	codeConfig      = "CONFIG"
	codeUnsupported = "UNSUPPORTED"
	codeArgument    = "INVALID_ARGUMENT"
	codeNotFound    = "NOT_FOUND"
)

func configError(hint, format string, args ...any) *Error {
	return &Error{Code: codeConfig, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Select gives the named profile; "" is the default one, or the only one.
func (c *Config) Select(name string) (*Profile, error) {
	names := c.names()
	switch {
	case name == "" && c.Default != "":
		name = c.Default
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "" && len(names) == 0:
		return nil, configError(initHint, "%s: no profile in this file", c.Path)
	case name == "":
		return nil, configError(`Name one with --profile, or write default = "`+names[0]+`" at the top of the file.`,
			"%s: %d profiles and no default: %s", c.Path, len(names), strings.Join(names, ", "))
	}
	if p := c.Profiles[name]; p != nil {
		return p, nil
	}
	return nil, &Error{Code: codeNotFound, Message: fmt.Sprintf("%s: no profile %s", c.Path, quoteName(name)),
		Hint: "Profiles here: " + strings.Join(names, ", ") + ". The built-in one is demo."}
}

func (c *Config) names() []string {
	names := make([]string, 0, len(c.Profiles))
	for name := range c.Profiles {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// quoteName keeps a name from a caller short and printable.
func quoteName(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	return fmt.Sprintf("%q", s)
}

const initHint = "Write a first one: pvelens init --node pve1"
