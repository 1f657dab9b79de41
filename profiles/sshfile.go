package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of one reading of all configuration files; OpenSSH itself has only the depth.
const (
	maxIncludeDepth = 16
	maxSSHFiles     = 1000
	maxSSHBytes     = 8 << 20
)

// sshFile is one configuration file as OpenSSH reads it.
type sshFile struct {
	path  string
	user  bool // read as the user's: -F, ~/.ssh/config and what they include
	data  []byte
	lines []*sshLine
	stamp string // changes when the file does
}

// sshLine is one line that is neither blank nor a comment.
type sshLine struct {
	file     *sshFile
	num      int
	odd      string // why its keyword is not certain; "" if it is
	strange  string // why its value is not certain
	key      string // lower case
	raw      string // everything after the keyword, trimmed
	args     []string
	quoted   bool       // a quote or a backslash in it
	included []*sshFile // what an Include line brings, in order
	unknown  string     // why an Include line cannot be followed with certainty
	unsure   string     // why versions of ssh could follow it differently; included holds the files of all
}

func (l *sshLine) at() string { return fmt.Sprintf("%s:%d", l.file.path, l.num) }

// sshFiles are all files that ssh would read for one profile, in its order.
type sshFiles struct {
	roots []*sshFile
	all   []*sshFile
}

// stamp changes when any file does, or when an Include finds others.
func (s *sshFiles) stamp() string {
	var b strings.Builder
	for _, f := range s.all {
		b.WriteString(f.stamp)
	}
	return b.String()
}

// truth is whether a block applies.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// eachFor calls f for every line with whether it applies to a destination, as far as Host lines tell; a Match other than
// Match all may.
func (s *sshFiles) eachFor(alias string, f func(*sshLine, truth)) {
	var walk func(*sshFile, truth)
	walk = func(file *sshFile, around truth) {
		state := around
		for _, l := range file.lines {
			switch l.key {
			case "host":
				state = min(around, hostTruth(l, alias))
			case "match":
				if state = min(around, maybe); strings.EqualFold(l.raw, "all") {
					state = around
				}
			}
			f(l, state)
			for _, inc := range l.included {
				walk(inc, state)
			}
		}
	}
	for _, root := range s.roots {
		walk(root, yes)
	}
}

func hostTruth(l *sshLine, alias string) truth {
	if l.odd+l.strange != "" || l.quoted {
		return maybe
	}
	if matchHost(l.args, alias) {
		return yes
	}
	return no
}

// matchHost is a Host line: a match of !pattern outweighs all others.
func matchHost(patterns []string, alias string) bool {
	found := false
	for _, p := range patterns {
		p, negated := strings.CutPrefix(p, "!")
		if matchPattern(alias, p) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// each calls f for every line of every file, in reading order, included files where they stand.
func (s *sshFiles) each(f func(*sshLine)) {
	var walk func(*sshFile)
	walk = func(file *sshFile) {
		for _, l := range file.lines {
			f(l)
			for _, inc := range l.included {
				walk(inc)
			}
		}
	}
	for _, root := range s.roots {
		walk(root)
	}
}

// reader follows the configuration files of one profile.
type reader struct {
	env   Env
	out   sshFiles
	bytes int
}

// readSSH reads what ssh would read: the given file alone, or else the user's and the system's. A file that another user
// could have written is an error; ssh has the same rule for its own default files and for included ones.
func readSSH(env Env, config string) (*sshFiles, error) {
	r := &reader{env: env}
	if config != "" {
		path := config
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(env.Home, rest)
		}
		f, err := r.read(path, true, true, 0)
		if err == nil && f == nil {
			err = configError("Correct ssh_config in the profile, or leave it out to use OpenSSH's own files.", "%s: no such file", path)
		}
		if err != nil {
			return nil, err
		}
		r.out.roots = append(r.out.roots, f)
		return &r.out, nil
	}
	for _, root := range []struct {
		path string
		user bool
	}{{filepath.Join(env.Home, ".ssh", "config"), true}, {env.SystemConfig, false}} {
		f, err := r.read(root.path, root.user, root.user, 0)
		if err != nil {
			return nil, err
		}
		if f != nil {
			r.out.roots = append(r.out.roots, f)
		}
	}
	return &r.out, nil
}

// read gives nil for a file that does not exist.
func (r *reader) read(path string, user, checked bool, depth int) (*sshFile, error) {
	if depth > maxIncludeDepth {
		return nil, configError("An Include line leads back to its own file, or the files are nested too deeply.", "%s: more than %d levels of Include", path, maxIncludeDepth)
	}
	data, stamp, err := r.slurp(path, checked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	file := &sshFile{path: path, user: user, data: data, stamp: stamp}
	r.out.all = append(r.out.all, file)
	if len(r.out.all) > maxSSHFiles {
		return nil, configError("", "%s: more than %d configuration files", path, maxSSHFiles)
	}
	for i, text := range bytes.Split(data, []byte("\n")) {
		line := lexLine(string(text))
		if line == nil {
			continue
		}
		line.file, line.num = file, i+1
		file.lines = append(file.lines, line)
		if line.odd == "" && line.key == "include" {
			if err := r.include(line, depth); err != nil {
				return nil, err
			}
		}
	}
	return file, nil
}

func (r *reader) slurp(path string, checked bool) ([]byte, string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "", fs.ErrNotExist
		}
		return nil, "", configError("Make the file readable for the user who runs pvelens.", "%s: %v", path, plainError(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", configError("", "%s: %v", path, plainError(err))
	}
	if path == os.DevNull {
		return nil, path, nil
	}
	if checked {
		if err := checkOwner(path, info); err != nil {
			return nil, "", err
		}
	}
	if info.IsDir() { // ssh reads nothing in it, and says nothing
		return nil, path + "\x00dir\x00", nil
	}
	if !info.Mode().IsRegular() {
		return nil, "", configError("", "%s: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSSHBytes+1))
	if err != nil {
		return nil, "", configError("", "%s: %v", path, plainError(err))
	}
	if r.bytes += len(data); r.bytes > maxSSHBytes {
		return nil, "", configError("", "%s: more than %d bytes of configuration", path, maxSSHBytes)
	}
	return data, fmt.Sprintf("%s\x00%d\x00%d\x00", path, info.Size(), info.ModTime().UnixNano()), nil
}

// include finds the files of an Include line. What another version of ssh would read otherwise is noted in unknown.
func (r *reader) include(line *sshLine, depth int) error {
	if strings.ContainsAny(line.raw, `\'`) {
		line.unknown = "a quote or a backslash in Include"
	}
	for _, arg := range line.args {
		paths, unknown, unsure := r.expandInclude(arg, line.file.user)
		line.unknown += unknown
		line.unsure += unsure
		for _, path := range paths {
			f, err := r.read(path, line.file.user, true, depth+1)
			if err != nil {
				return err
			}
			if f != nil {
				line.included = append(line.included, f)
			}
		}
	}
	return nil
}

// expandInclude gives the files that one argument of Include names.
func (r *reader) expandInclude(arg string, user bool) (paths []string, unknown, unsure string) {
	if strings.Contains(arg, "%") {
		return nil, "a token in Include", ""
	}
	if strings.Contains(arg, "$") {
		// OpenSSH reads a variable as it stands before 9.9 and expands it since: the files of both readings count.
		unsure = "a variable in Include"
		if s, ok := expandVars(arg, r.env.sshGetenv); ok && s != arg {
			paths, unknown, _ = r.expandInclude(s, user)
		}
	}
	switch {
	case strings.HasPrefix(arg, "~") && !user:
		return paths, unknown, "~ in an Include of the system's files"
	case strings.HasPrefix(arg, "~/"):
		arg = filepath.Join(r.env.includeHome(), arg[2:])
	case strings.HasPrefix(arg, "~"):
		name, rest, _ := strings.Cut(arg[1:], "/")
		home, err := r.env.lookupHome(name)
		if unsure = "another user's home in Include"; err != nil { // glob finds nothing for a user whom nobody knows
			return paths, unknown, unsure
		}
		arg = filepath.Join(home, rest)
	case !filepath.IsAbs(arg) && user:
		arg = filepath.Join(r.env.includeHome(), ".ssh", arg)
	case !filepath.IsAbs(arg):
		arg = filepath.Join(filepath.Dir(r.env.SystemConfig), arg)
	}
	if strings.ContainsAny(arg, `[]{}\`) || strings.Contains(arg, "..") {
		unknown = "a pattern other than * and ?, or two dots, in Include"
	}
	return append(paths, globAll(arg)...), unknown, unsure
}

// globAll is glob(3) for * and ?: sorted by bytes, and a leading dot is matched only by a dot.
func globAll(pattern string) []string {
	found := []string{"/"}
	for _, part := range strings.Split(strings.Trim(filepath.Clean(pattern), "/"), "/") {
		var next []string
		for _, dir := range found {
			next = append(next, globPart(dir, part)...)
		}
		found = next
	}
	slices.Sort(found)
	return found
}

func globPart(dir, part string) []string {
	if !strings.ContainsAny(part, "*?[") {
		path := filepath.Join(dir, part)
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		return []string{path}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".") {
			continue
		}
		ok := matchPattern(e.Name(), part)
		if strings.Contains(part, "[") {
			ok, _ = filepath.Match(part, e.Name())
		}
		if ok {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

const (
	blanks  = " \t\r\n\f"
	maxLine = 1000 // older versions of ssh cut a longer one
)

// lexLine splits one line into keyword and arguments; nil is a blank line or a comment.
func lexLine(text string) *sshLine {
	text = strings.TrimRight(text, blanks)
	body := strings.TrimLeft(text, " \t")
	if body == "" || body[0] == '#' {
		return nil
	}
	l := &sshLine{}
	n := 0
	for n < len(body) && isAlnum(body[n]) {
		n++
	}
	l.key = strings.ToLower(body[:n])
	rest := body[n:]
	l.raw = strings.TrimLeft(rest, " \t")
	if after, ok := strings.CutPrefix(l.raw, "="); ok {
		l.raw = strings.TrimLeft(after, " \t")
	} else if rest != "" && l.raw == rest {
		l.odd = "the line does not begin with a keyword and a blank"
	}
	switch {
	case n == 0 || body[0] >= '0' && body[0] <= '9':
		l.odd = "the line does not begin with a keyword"
	case strings.ContainsFunc(body, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f }):
		l.odd = "a control character in the line"
	case !utf8.ValidString(body):
		l.strange = "the line is not UTF-8"
	case l.raw == "":
		l.strange = "nothing after the keyword"
	case l.raw[0] == '=':
		l.odd = "two equals signs"
	case len(body) > maxLine:
		l.strange = "a very long line"
	}
	l.quoted = strings.ContainsAny(l.raw, "\"'\\")
	var ok bool
	if l.args, ok = splitArgs(l.raw); !ok {
		l.strange = "a quote that does not end"
	}
	return l
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// splitArgs is OpenSSH's argv_split (8.7 and newer): blanks part words, both quotes and the backslash protect, a # at
// the start of a word ends the line.
func splitArgs(s string) (args []string, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' || s[i] == '\t' {
			continue
		}
		if s[i] == '#' {
			break
		}
		var word []byte
		var quote byte
		for ; i < len(s); i++ {
			c := s[i]
			if c == '\\' && i+1 < len(s) && (s[i+1] == '\'' || s[i+1] == '"' || s[i+1] == '\\' || quote == 0 && s[i+1] == ' ') {
				i++
				word = append(word, s[i])
			} else if quote == 0 && (c == ' ' || c == '\t') {
				break
			} else if quote == 0 && (c == '"' || c == '\'') {
				quote = c
			} else if quote != 0 && c == quote {
				quote = 0
			} else {
				word = append(word, c)
			}
		}
		if quote != 0 {
			return args, false
		}
		args = append(args, string(word))
	}
	return args, true
}

// matchPattern is OpenSSH's match_pattern: * is any run of characters, ? exactly one, by bytes, in this letter case.
func matchPattern(s, pattern string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			star, mark = j, i
			j++
		case j < len(pattern) && (pattern[j] == '?' || pattern[j] == s[i]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "*") == ""
}

// matchList is OpenSSH's match_pattern_list: a comma list in which a match of !pattern outweighs all others.
func matchList(s, list string) bool {
	found := false
	for _, pattern := range strings.Split(list, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if matchPattern(s, pattern) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}
