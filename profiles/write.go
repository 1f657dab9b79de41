package profiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// WriteFirst writes a first profiles.toml that holds p: mode 0600, its directory 0700 if it is new. It never overwrites
// and never leaves half a file: the text is written beside the place and linked into it. SSHUser "" is written as root.
// Errors are *Error.
func WriteFirst(path string, p *Profile) error {
	text := firstText(p)
	if _, err := parse(path, []byte(text)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return configError("", "%s: %v", filepath.Dir(path), plainError(err))
	}
	if _, err := os.Lstat(path); err == nil {
		return existsError(path)
	}
	temp, err := writeTemp(filepath.Dir(path), text)
	if err != nil {
		return configError("", "%s: %v", filepath.Dir(path), plainError(err))
	}
	defer os.Remove(temp)
	err = os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = writeExclusive(path, text) // a file system without hard links
	}
	if errors.Is(err, fs.ErrExist) {
		return existsError(path)
	}
	if err != nil {
		return configError("", "%s: %v", path, plainError(err))
	}
	return nil
}

func existsError(path string) error {
	return configError("Edit it, or move it away first.", "%s: exists already; nothing was written", path)
}

func writeTemp(dir, text string) (string, error) {
	f, err := os.CreateTemp(dir, ".profiles-*.toml") // 0600
	if err != nil {
		return "", err
	}
	if err := finish(f, text); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func writeExclusive(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := finish(f, text); err != nil {
		os.Remove(path)
		return err
	}
	return nil
}

func finish(f *os.File, text string) error {
	_, err := f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// firstText is the file: what is set stands, what is not stands as a comment with its default.
func firstText(p *Profile) string {
	var b strings.Builder
	name, user := p.Name, p.SSHUser
	if name == "" {
		name = "homelab"
	}
	if user == "" {
		user = "root"
	}
	fmt.Fprintf(&b, "# pvelens: where to connect, and as whom. Check it with: pvelens doctor\n\n")
	fmt.Fprintf(&b, "default = %s\n\n[profiles.%s]\n", quoteTOML(name), name)
	fmt.Fprintf(&b, "nodes = %s # SSH destinations of Proxmox nodes; one is enough for a cluster's inventory\n", listTOML(p.Nodes))
	hosts := "docker_hosts = " + listTOML(p.DockerHosts)
	if len(p.DockerHosts) == 0 {
		hosts = `# docker_hosts = ["nas"]`
	}
	fmt.Fprintf(&b, "%s # hosts that run Docker and are reached directly\n", hosts)
	fmt.Fprintf(&b, "ssh_user = %s # without this line: whatever ssh itself would use\n", quoteTOML(user))
	b.WriteString("\n# Everything below is optional; a line that begins with # shows the default or an example.\n")
	for _, o := range p.optional() {
		mark, value := "", o.value
		if value == "" {
			mark, value = "# ", o.preset
		}
		fmt.Fprintf(&b, "%s%s = %s # %s\n", mark, o.key, value, o.why)
	}
	return b.String()
}

// optional are the settings that a first file shows; value "" is not set.
func (p *Profile) optional() []struct{ key, value, preset, why string } {
	word := func(v, preset string) string {
		if v == "" || v == preset {
			return ""
		}
		return quoteTOML(v)
	}
	length := func(d, preset time.Duration) string {
		if d == 0 || d == preset {
			return ""
		}
		return quoteTOML(d.String())
	}
	allow, nets := "", ""
	if p.AllowLocalCommands {
		allow = "true"
	}
	if len(p.PermittedNetworks) > 0 {
		var list []string
		for _, n := range p.PermittedNetworks {
			list = append(list, n.String())
		}
		nets = listTOML(list)
	}
	ignore := ""
	if len(p.Ignore) > 0 {
		ignore = listTOML(p.Ignore)
	}
	return []struct{ key, value, preset, why string }{
		{"ssh_config", word(p.SSHConfig, ""), `"~/.ssh/config"`, "without this line: OpenSSH's own user and system files"},
		{"resolver", word(p.Resolver, "auto"), `"auto"`, "auto, builtin (starts no program) or openssh (asks ssh -G)"},
		{"allow_local_commands", allow, "false", "ProxyCommand, KnownHostsCommand and Match exec"},
		{"transport", word(p.Transport, "ssh"), `"ssh"`, "or controlmaster: use a master connection that ssh has open"},
		{"become", word(p.Become, "none"), `"none"`, "none, sudo or gate: how a user who is not root gets root's read rights"},
		{"permitted_networks", nets, `["10.0.0.0/24"]`, "only addresses in these are ever checked"},
		{"connect_timeout", length(p.ConnectTimeout, defaultConnectTimeout), `"5s"`, "for one connection"},
		{"deadline", length(p.Deadline, defaultDeadline), `"20s"`, "for one question, all nodes together"},
		{"ignore", ignore, `["GUEST_AGENT_OFF", "SNAPSHOT_OLD:101"]`, "findings that are known and accepted"},
	}
}

func listTOML(in []string) string {
	quoted := make([]string, len(in))
	for i, s := range in {
		quoted[i] = quoteTOML(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quoteTOML writes a basic string.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
