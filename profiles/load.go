package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxProfiles bounds the file: a larger one is not a profiles.toml.
const maxProfiles = 1 << 20

// Path is where profiles.toml is: $PVELENS_HOME/profiles.toml, else $XDG_CONFIG_HOME/pvelens/profiles.toml, else
// ~/.config/pvelens/profiles.toml. A variable that is set decides, whether or not the file is there; a relative
// XDG_CONFIG_HOME is ignored, as its specification wants.
func Path(getenv func(string) string, home string) string {
	if dir := getenv("PVELENS_HOME"); dir != "" {
		return filepath.Join(dir, "profiles.toml")
	}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pvelens", "profiles.toml")
	}
	return filepath.Join(home, ".config", "pvelens", "profiles.toml")
}

// Load reads and checks one profiles.toml, whole: no profile of a file with a mistake in it is returned. Every error is
// an *Error that names the file, and the line, column and key where there is one.
func Load(path string) (*Config, error) {
	data, err := readOwn(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data)
}

// readOwn reads a file that only its owner, who is root or this user, can write: OpenSSH's rule for its own.
func readOwn(path string) ([]byte, error) {
	// A FIFO in the file's place would block an ordinary open for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, configError("Looked there because of the first of PVELENS_HOME, XDG_CONFIG_HOME and HOME that is set. "+initHint,
			"%s: no such file; it is $PVELENS_HOME/profiles.toml, else $XDG_CONFIG_HOME/pvelens/profiles.toml, "+
				"else ~/.config/pvelens/profiles.toml", path)
	}
	if err != nil {
		return nil, configError("Make the file readable for the user who runs pvelens.", "%s: %v", path, plainError(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, configError("", "%s: %v", path, plainError(err))
	}
	if !info.Mode().IsRegular() {
		return nil, configError("", "%s: not a regular file", path)
	}
	if err := checkOwner(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxProfiles+1))
	if err != nil {
		return nil, configError("", "%s: %v", path, plainError(err))
	}
	if len(data) > maxProfiles {
		return nil, configError("", "%s: larger than %d bytes", path, maxProfiles)
	}
	return data, nil
}

// checkOwner is OpenSSH's rule: owned by root or by this user, and writable for nobody else.
func checkOwner(path string, info fs.FileInfo) error {
	uid, known := ownerOf(info)
	if known && uid != 0 && uid != os.Getuid() {
		return configError("Run: chown $(id -u) "+path, "%s: owned by another user (uid %d)", path, uid)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return configError("Run: chmod go-w "+path, "%s: others can write it (mode %04o)", path, perm)
	}
	return nil
}

// plainError drops the path that os puts in front: the message has it already.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// The shape of the file. Everything optional is a pointer or nil, so that absent and empty differ.
type rawConfig struct {
	Default  *string                `toml:"default"`
	Profiles map[string]*rawProfile `toml:"profiles"`
}

type rawProfile struct {
	Nodes              []string             `toml:"nodes"`
	DockerHosts        []string             `toml:"docker_hosts"`
	SSHUser            *string              `toml:"ssh_user"`
	SSHConfig          *string              `toml:"ssh_config"`
	Resolver           *string              `toml:"resolver"`
	AllowLocalCommands bool                 `toml:"allow_local_commands"`
	Transport          *string              `toml:"transport"`
	Become             *string              `toml:"become"`
	PermittedNetworks  []string             `toml:"permitted_networks"`
	ConnectTimeout     *string              `toml:"connect_timeout"`
	Deadline           *string              `toml:"deadline"`
	Ignore             []string             `toml:"ignore"`
	Thresholds         map[string]rawLimits `toml:"thresholds"`
}

type rawLimits struct {
	Warning  *float64 `toml:"warning"`
	Critical *float64 `toml:"critical"`
}

// forms is the right form of each key, for the errors.
var forms = map[string]string{
	"default":              `the name of a profile, such as "homelab"`,
	"profiles":             `tables: [profiles.homelab]`,
	"nodes":                `a list of SSH destinations, such as ["pve1", "root@pve2"]`,
	"docker_hosts":         `a list of SSH destinations, such as ["nas"]`,
	"ssh_user":             `a user name, such as "root"`,
	"ssh_config":           `a path that is absolute or begins with ~/, such as "~/.ssh/config"`,
	"resolver":             `"auto", "builtin" or "openssh"`,
	"allow_local_commands": `true or false`,
	"transport":            `"ssh" or "controlmaster"`,
	"become":               `"none", "sudo" or "gate"`,
	"permitted_networks":   `a list of networks, at most /16 and /64, such as ["10.0.0.0/24"]`,
	"connect_timeout":      `a duration from "100ms" to "5m", such as "5s"`,
	"deadline":             `a duration from "1s" to "1h" and not below connect_timeout, such as "20s"`,
	"ignore":               `a list of CODE or CODE:<last segment of the subject>, such as ["SNAPSHOT_OLD:101"]`,
	"thresholds":           `a table: STORAGE_FULL = { warning = 85, critical = 95 }`,
	"warning":              `a number from 0, in the unit of the finding`,
	"critical":             `a number from 0, in the unit of the finding`,
}

// places maps a dotted key to its line and column.
type places map[string][2]int

// document is one file while it is checked.
type document struct {
	path   string
	places places
}

// parse checks one file's text.
func parse(path string, data []byte) (*Config, error) {
	var raw rawConfig
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return nil, decodeError(path, err)
	}
	doc := &document{path: path, places: keyPlaces(data)}
	if err := doc.checkCase(); err != nil {
		return nil, err
	}
	cfg := &Config{Path: path, Profiles: map[string]*Profile{}}
	for _, name := range slices.Sorted(maps.Keys(raw.Profiles)) {
		p, err := doc.profile(name, raw.Profiles[name])
		if err != nil {
			return nil, err
		}
		cfg.Profiles[name] = p
	}
	if raw.Default != nil {
		if cfg.Profiles[*raw.Default] == nil {
			return nil, doc.fail([]string{"default"}, "%s names no profile of this file; it has %s", quoteName(*raw.Default), listed(cfg.names()))
		}
		cfg.Default = *raw.Default
	}
	return cfg, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// decodeError turns what go-toml says into file, line, column, key and right form.
func decodeError(path string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		first := strict.Errors[0]
		row, col := first.Position()
		return configError("Keys here: "+knownKeys(first.Key())+".", "%s:%d:%d: %s: unknown key", path, row, col, dotted(first.Key()))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		row, col := bad.Position()
		key := bad.Key()
		reason := strings.TrimPrefix(bad.Error(), "toml: ")
		if len(key) == 0 || strings.Contains(reason, " already ") {
			return configError("", "%s:%d:%d: not TOML: %s", path, row, col, reason)
		}
		return configError("", "%s:%d:%d: %s: want %s", path, row, col, dotted(key), formOf(key))
	}
	return configError("", "%s: %s", path, strings.TrimPrefix(err.Error(), "toml: "))
}

func knownKeys(key []string) string {
	switch {
	case len(key) <= 1:
		return "default, [profiles.NAME]"
	case len(key) >= 4 && key[2] == "thresholds":
		return "warning, critical"
	}
	return "nodes, docker_hosts, ssh_user, ssh_config, resolver, allow_local_commands, transport, become, permitted_networks, " +
		"connect_timeout, deadline, ignore, thresholds"
}

// formOf is the right form of the innermost part of a key that has one.
func formOf(key []string) string {
	for i := len(key) - 1; i >= 0; i-- {
		if form := forms[key[i]]; form != "" && !(i == 1 && key[0] == "profiles") {
			return form
		}
		if i == 3 && key[2] == "thresholds" {
			return "{ warning = NUMBER, critical = NUMBER }"
		}
		if i == 1 && key[0] == "profiles" {
			return "a table: [profiles.homelab]"
		}
	}
	return "another type"
}

func dotted(key []string) string {
	parts := make([]string, len(key))
	for i, k := range key {
		parts[i] = k
		if !isBare(k) {
			parts[i] = quoteName(k)
		}
	}
	return strings.Join(parts, ".")
}

func isBare(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) < 0
}

// keyPlaces finds where each key of a well-formed file stands.
func keyPlaces(data []byte) places {
	found := places{}
	var p unstable.Parser
	p.Reset(data)
	var table []string
	for p.NextExpression() {
		node := p.Expression()
		switch node.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = found.add(&p, nil, node.Key())
		case unstable.KeyValue:
			found.keyValue(&p, table, node)
		}
	}
	return found
}

func (f places) keyValue(p *unstable.Parser, prefix []string, node *unstable.Node) {
	full := f.add(p, prefix, node.Key())
	if value := node.Value(); value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			f.keyValue(p, full, it.Node())
		}
	}
}

// add records every prefix of a key, and gives the whole.
func (f places) add(p *unstable.Parser, prefix []string, key unstable.Iterator) []string {
	full := append([]string(nil), prefix...)
	for key.Next() {
		node := key.Node()
		full = append(full, string(node.Data))
		if _, seen := f[placeKey(full)]; !seen && node.Raw.Length > 0 {
			start := p.Shape(node.Raw).Start
			f[placeKey(full)] = [2]int{start.Line, start.Column}
		}
	}
	return full
}

func placeKey(key []string) string { return strings.Join(key, "\x00") }

// checkCase refuses keys in another letter case: go-toml would take NODES for nodes.
func (d *document) checkCase() error {
	for _, at := range slices.Sorted(maps.Keys(d.places)) {
		key := strings.Split(at, "\x00")
		last := key[len(key)-1]
		named := len(key) == 2 || len(key) == 4 // a profile's name, a finding's code
		if form := forms[last]; form == "" && !named || named && key[0] != "profiles" {
			return d.fail(key, "unknown key; keys are lower case: %s", knownKeys(key))
		}
	}
	return nil
}

// fail is an error at a key: its place, its name, what is wrong with it and its right form.
func (d *document) fail(key []string, format string, args ...any) error {
	at := d.path
	if pos, ok := d.places[placeKey(key)]; ok {
		at = fmt.Sprintf("%s:%d:%d", d.path, pos[0], pos[1])
	}
	return configError("Want "+formOf(key)+".", "%s: %s: %s", at, dotted(key), fmt.Sprintf(format, args...))
}

// The defaults of DESIGN's profile.
const (
	defaultConnectTimeout = 5 * time.Second
	defaultDeadline       = 20 * time.Second
)
