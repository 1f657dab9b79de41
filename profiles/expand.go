package profiles

import (
	"crypto/sha1" //nolint:gosec // OpenSSH's %C is defined as this hash
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// tokens are what the percent escapes of one destination stand for, as in ssh_config(5), TOKENS.
type tokens map[byte]string

// tokensOf knows the tokens of a destination whose host, user and port are settled.
func tokensOf(env Env, t *Target, alias string) tokens {
	short, _, _ := strings.Cut(env.Hostname, ".")
	keyAlias := alias
	if t.HostKeyAlias != "" {
		keyAlias = t.HostKeyAlias
	}
	port := strconv.Itoa(t.Port)
	toks := tokens{
		'%': "%", 'd': env.Home, 'h': t.HostName, 'i': strconv.Itoa(env.UID), 'k': keyAlias, 'L': short, 'l': env.Hostname,
		'n': alias, 'p': port, 'r': t.User, 'u': env.User,
	}
	if len(t.ProxyJump) == 0 { // with a jump host the hash differs between versions
		sum := sha1.Sum([]byte(env.Hostname + t.HostName + port + t.User))
		toks['C'] = hex.EncodeToString(sum[:])
	}
	return toks
}

// expand replaces %x and, if vars is given, ${NAME}; what it does not know is an error.
func (t tokens) expand(s string, vars func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			i++
			if i == len(s) {
				return "", errors.New("a single % at the end")
			}
			value, ok := t[s[i]]
			if !ok {
				return "", fmt.Errorf("the token %%%c is not known", s[i])
			}
			b.WriteString(value)
		case vars != nil && strings.HasPrefix(s[i:], "${"):
			name, _, closed := strings.Cut(s[i+2:], "}")
			value, set := vars(name)
			if !closed || !set || !isEnvName(name) {
				return "", fmt.Errorf("the variable %s is not set", quoteName("${"+name+"}"))
			}
			b.WriteString(value)
			i += len(name) + 2
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// expandVars replaces ${NAME} only.
func expandVars(s string, vars func(string) (string, bool)) (string, bool) {
	identity := tokens{}
	for c := range 256 {
		identity[byte(c)] = "%" + string([]byte{byte(c)})
	}
	out, err := identity.expand(s, vars)
	return out, err == nil
}

func isEnvName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !(r < 0x80 && isAlnum(byte(r)) || r == '_') }) < 0
}

// tilde expands ~/ and, where the system knows the user, ~user/.
func (e Env) tilde(s string) (string, error) {
	if !strings.HasPrefix(s, "~") {
		return s, nil
	}
	name, rest, slash := strings.Cut(s[1:], "/")
	if !slash || strings.HasPrefix(rest, "/") {
		return "", errors.New("~ without a path behind it")
	}
	home := e.Home
	if name != "" {
		var err error
		if home, err = e.lookupHome(name); err != nil {
			return "", fmt.Errorf("the home of user %s is not known", quoteName(name))
		}
	}
	return strings.TrimSuffix(home, "/") + "/" + rest, nil
}

// path expands a file name: ~ first, then tokens and variables, as OpenSSH does.
func (e Env) path(s string, toks tokens) (string, error) {
	s, err := e.tilde(s)
	if err != nil {
		return "", err
	}
	return toks.expand(s, e.lookupVar)
}

func (e Env) lookupVar(name string) (string, bool) {
	v := e.Getenv(name)
	return v, v != ""
}

// sshGetenv is the environment that ssh is given here.
func (e Env) sshGetenv(name string) (string, bool) {
	for _, passed := range sshEnvironment {
		if name == passed {
			return e.lookupVar(name)
		}
	}
	return "", false
}

// includeHome is the home that Include means: glob(3) takes HOME, all else in OpenSSH the password file.
func (e Env) includeHome() string {
	if home := e.Getenv("HOME"); home != "" {
		return home
	}
	return e.Home
}

func (e Env) lookupHome(user string) (string, error) {
	if e.LookupHome == nil {
		return "", errors.New("users are not looked up")
	}
	home, err := e.LookupHome(user)
	if err == nil && !filepath.IsAbs(home) {
		err = errors.New("no home")
	}
	return home, err
}
