package profiles

import (
	"regexp"
	"slices"
	"strings"
)

// kind is how OpenSSH reads the value of a keyword, as far as the builtin resolver may follow it.
type kind int

const (
	kindUnproven kind = iota // not in the table: ssh is asked
	kindHost
	kindMatch
	kindInclude
	kindIgnoreUnknown
	kindString  // one word
	kindPath    // one word, may be quoted as a whole
	kindPaths   // one or more words; the first line wins as a whole
	kindGather  // one path a line; lines add up
	kindWord    // one of a few words, any letter case
	kindPort    // 1..65535
	kindInt     // 0..999999999
	kindTime    // 90, 1m30s, none
	kindPersist // yes, no or a time
	kindAlgos   // a comma list of names
	kindCommand // the raw rest of the line
	kindJump    // the raw rest of the line, without a comment
	kindNames   // words that have no effect here
	kindSetEnv  // NAME=VALUE words that have no effect here
	kindForward // [address:]port and host:port, or the first alone
	kindRefuse  // has an effect that pvelens cannot give: refused where it applies
)

type keyword struct {
	kind  kind
	words []string // for kindWord
}

var (
	yesNo     = keyword{kindWord, []string{"yes", "no", "true", "false"}}
	plainWord = keyword{kind: kindString}
)

// keywords is the proven set: what OpenSSH 8 to 10 either reads the same way or refuses, with values on which both
// parsers agree. Everything else is for ssh itself.
var keywords = map[string]keyword{
	"host":          {kind: kindHost},
	"match":         {kind: kindMatch},
	"include":       {kind: kindInclude},
	"ignoreunknown": {kind: kindIgnoreUnknown},

	"hostname":                 plainWord,
	"user":                     plainWord,
	"port":                     {kind: kindPort},
	"hostkeyalias":             plainWord,
	"bindaddress":              plainWord,
	"identityagent":            {kind: kindPath},
	"controlpath":              {kind: kindPath},
	"revokedhostkeys":          {kind: kindPath},
	"identityfile":             {kind: kindGather},
	"certificatefile":          {kind: kindGather},
	"userknownhostsfile":       {kind: kindPaths},
	"globalknownhostsfile":     {kind: kindPaths},
	"identitiesonly":           yesNo,
	"connecttimeout":           {kind: kindTime},
	"serveraliveinterval":      {kind: kindTime},
	"serveralivecountmax":      {kind: kindInt},
	"addressfamily":            {kindWord, []string{"any", "inet", "inet6"}},
	"proxycommand":             {kind: kindCommand},
	"knownhostscommand":        {kind: kindCommand},
	"proxyjump":                {kind: kindJump},
	"kexalgorithms":            {kind: kindAlgos},
	"hostkeyalgorithms":        {kind: kindAlgos},
	"pubkeyacceptedalgorithms": {kind: kindAlgos},
	"ciphers":                  {kind: kindAlgos},
	"macs":                     {kind: kindAlgos},

	"stricthostkeychecking":            {kindWord, []string{"yes", "no", "ask", "off", "true", "false", "accept-new"}},
	"verifyhostkeydns":                 {kindWord, []string{"yes", "no", "ask", "true", "false"}},
	"nohostauthenticationforlocalhost": yesNo,
	"pubkeyauthentication":             yesNo,
	"preferredauthentications":         plainWord,
	"proxyusefdpass":                   yesNo,
	"batchmode":                        yesNo,
	"canonicalizehostname":             {kindWord, []string{"no", "false"}},

	"bindinterface": {kind: kindRefuse},
	"remotecommand": {kind: kindRefuse},

	"addkeystoagent":                  {kindWord, []string{"yes", "no", "ask", "confirm", "true", "false"}},
	"challengeresponseauthentication": yesNo,
	"checkhostip":                     yesNo,
	"compression":                     {kindWord, []string{"yes", "no"}},
	"connectionattempts":              {kind: kindInt},
	"controlmaster":                   {kindWord, []string{"yes", "no", "ask", "auto", "autoask", "true", "false"}},
	"clearallforwardings":             yesNo,
	"controlpersist":                  {kind: kindPersist},
	"localcommand":                    {kind: kindCommand},
	"enablesshkeysign":                yesNo,
	"exitonforwardfailure":            yesNo,
	"fingerprinthash":                 {kindWord, []string{"md5", "sha256"}},
	"forwardagent":                    yesNo,
	"forwardx11":                      yesNo,
	"forwardx11trusted":               yesNo,
	"gatewayports":                    yesNo,
	"gssapiauthentication":            yesNo,
	"gssapidelegatecredentials":       yesNo,
	"hashknownhosts":                  yesNo,
	"hostbasedauthentication":         yesNo,
	"kbdinteractiveauthentication":    yesNo,
	"dynamicforward":                  {kind: kindForward},
	"localforward":                    {kind: kindForward},
	"remoteforward":                   {kind: kindForward},
	"loglevel":                        {kindWord, []string{"quiet", "fatal", "error", "info", "verbose", "debug", "debug1", "debug2", "debug3"}},
	"numberofpasswordprompts":         {kind: kindInt},
	"passwordauthentication":          yesNo,
	"permitlocalcommand":              yesNo,
	"requesttty":                      {kindWord, []string{"yes", "no", "force", "auto", "true", "false"}},
	"sendenv":                         {kind: kindNames},
	"setenv":                          {kind: kindSetEnv},
	"streamlocalbindunlink":           yesNo,
	"tcpkeepalive":                    yesNo,
	"updatehostkeys":                  {kindWord, []string{"yes", "no", "ask", "true", "false"}},
	"visualhostkey":                   yesNo,
}

// otherKeywords are OpenSSH's too, of any version: IgnoreUnknown does not silence them where they are known.
var otherKeywords = strings.Fields(`afstokenpassing bindinterface canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
	canonicalizepermittedcnames casignaturealgorithms channeltimeout cipher compressionlevel controlpersist
	dsaauthentication enableescapecommandline escapechar fallbacktorsh forkafterauthentication forwardx11timeout globalknownhostsfile2
	gssapiclientidentity gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity gssapitrustdns
	hostbasedacceptedalgorithms hostbasedkeytypes identityfile2 ipqos kbdinteractivedevices keepalive kerberosauthentication
	kerberostgtpassing logverbose obscurekeystroketiming permitremoteopen pkcs11provider protocol pubkeyacceptedkeytypes
	refuseconnection rekeylimit requiredrsasize rhostsauthentication rhostsrsaauthentication rsaauthentication securitykeyprovider
	sessiontype skeyauthentication smartcarddevice stdinnull streamlocalbindmask syslogfacility tag tisauthentication tunnel tunneldevice
	useprivilegedport userknownhostsfile2 useroaming usersh versionaddendum warnweakcrypto xauthlocation`)

var (
	timeShape = regexp.MustCompile(`^([0-9]{1,6}[sSmMhHdDwW])*([0-9]{1,6})?$`)
	intShape  = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
	algoShape = regexp.MustCompile(`^[a-z0-9][a-z0-9@.-]*(,[a-z0-9][a-z0-9@.-]*)*$`)
	envShape  = regexp.MustCompile(`^[A-Za-z_*?][A-Za-z0-9_*?]*$`)
	fromShape = regexp.MustCompile(`^([A-Za-z0-9.-]+:)?([1-9][0-9]{0,4})$`)
	toShape   = regexp.MustCompile(`^[A-Za-z0-9.-]+:([1-9][0-9]{0,4})$`)
	nameShape = regexp.MustCompile(`^[A-Za-z0-9._*?,-]+$`)
)

// provenAlgos are the names that every OpenSSH from 8.0 to 10 accepts in a list; another name makes it refuse the file,
// or not, depending on how it was built.
var provenAlgos = map[string][]string{
	"kexalgorithms": {"curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256", "ecdh-sha2-nistp384", "ecdh-sha2-nistp521",
		"diffie-hellman-group-exchange-sha256", "diffie-hellman-group16-sha512", "diffie-hellman-group18-sha512", "diffie-hellman-group14-sha256"},
	"hostkeyalgorithms": provenKeyTypes, "pubkeyacceptedalgorithms": provenKeyTypes,
	"ciphers": {"chacha20-poly1305@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr", "aes128-gcm@openssh.com", "aes256-gcm@openssh.com"},
	"macs": {"umac-64-etm@openssh.com", "umac-128-etm@openssh.com", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com",
		"umac-64@openssh.com", "umac-128@openssh.com", "hmac-sha2-256", "hmac-sha2-512"},
}

var provenKeyTypes = []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-256", "rsa-sha2-512",
	"ssh-ed25519-cert-v01@openssh.com", "ecdsa-sha2-nistp256-cert-v01@openssh.com", "ecdsa-sha2-nistp384-cert-v01@openssh.com",
	"ecdsa-sha2-nistp521-cert-v01@openssh.com", "rsa-sha2-256-cert-v01@openssh.com", "rsa-sha2-512-cert-v01@openssh.com"}

// unproven says why the builtin resolver may not read a line, or "". It does not know whether the line applies: ssh
// refuses a file for a bad value in any block.
func unproven(l *sshLine, ignored string) string {
	if why := l.odd + l.strange + l.unknown + l.unsure; why != "" {
		return why
	}
	k := keywords[l.key]
	if k.kind == kindUnproven {
		if !slices.Contains(otherKeywords, l.key) && matchList(l.key, strings.ToLower(ignored)) && !l.quoted {
			return ""
		}
		return "the keyword " + quoteName(l.key)
	}
	if k.kind == kindCommand || k.kind == kindJump || k.kind == kindRefuse {
		return unprovenRaw(l, k)
	}
	if why := unprovenText(l, k.kind); why != "" {
		return why
	}
	if why := unprovenCount(l, k.kind); why != "" {
		return why
	}
	return unprovenValue(l, k)
}

// unprovenRaw is for values that ssh takes as they stand, up to the end of the line.
func unprovenRaw(l *sshLine, k keyword) string {
	if k.kind == kindJump {
		if _, err := parseJumps(l.raw); err != nil && !isNone(l.raw) {
			return "ProxyJump in another form than [user@]host[:port],..."
		}
	}
	return ""
}

// unprovenText refuses what kevinburke/ssh_config reads otherwise: a # within a value, quotes, tabs between patterns.
func unprovenText(l *sshLine, k kind) string {
	body := l.raw
	if l.quoted {
		if k != kindPath && k != kindPaths && k != kindGather {
			return "a quote or a backslash"
		}
		if len(body) < 3 || body[0] != '"' || body[len(body)-1] != '"' || strings.ContainsAny(body[1:len(body)-1], "\"'\\#") {
			return "a quote that is not around the whole value, or a backslash"
		}
		return ""
	}
	several := k == kindHost || k == kindInclude || k == kindPaths || k == kindNames
	if i := strings.IndexByte(body, '#'); i > 0 {
		if several {
			return "a comment behind a list, which older versions of ssh take for a part of it"
		}
		if body[i-1] != ' ' && body[i-1] != '\t' {
			return "a # within a word"
		}
		body = body[:i]
	}
	if several && strings.Contains(body, "=") {
		return "an equals sign in a list, at which older versions of ssh part it"
	}
	if (k == kindHost || k == kindInclude) && strings.Contains(strings.TrimRight(body, blanks), "\t") {
		return "a tab between words"
	}
	return ""
}

func unprovenCount(l *sshLine, k kind) string {
	switch many := k == kindHost || k == kindMatch || k == kindInclude || k == kindPaths || k == kindNames || k == kindSetEnv || k == kindForward; {
	case len(l.args) == 0 || slices.Contains(l.args, ""):
		return "an empty value"
	case len(l.args) > 1 && !many:
		return "more than one value"
	case len(l.args) > 32: // ssh has limits of its own for some lists
		return "a very long list"
	}
	return ""
}

func unprovenValue(l *sshLine, k keyword) string {
	v := l.args[0]
	ok := true
	switch k.kind {
	case kindHost:
		return unprovenHost(l.args)
	case kindMatch:
		if len(l.args) != 1 || !strings.EqualFold(v, "all") {
			return "Match other than Match all"
		}
	case kindIgnoreUnknown:
		ok = nameShape.MatchString(v)
	case kindWord:
		ok = slices.Contains(k.words, strings.ToLower(v))
	case kindPort:
		_, ok = parsePort(v)
	case kindInt:
		ok = intShape.MatchString(v) && !(l.key == "connectionattempts" && v == "0")
	case kindTime:
		ok = v == "none" || v != "" && timeShape.MatchString(v)
	case kindPersist:
		ok = slices.Contains(yesNo.words, v) || timeShape.MatchString(v)
	case kindAlgos:
		ok = algoShape.MatchString(v) && !slices.ContainsFunc(strings.Split(v, ","), func(name string) bool {
			return !slices.Contains(provenAlgos[l.key], name)
		})
	case kindNames:
		ok = !slices.ContainsFunc(l.args, func(a string) bool { return !envShape.MatchString(strings.TrimPrefix(a, "-")) })
	case kindSetEnv:
		ok = !slices.ContainsFunc(l.args, func(a string) bool { name, _, cut := strings.Cut(a, "="); return !cut || !envShape.MatchString(name) })
	case kindForward:
		ok = plainForward(l.args, l.key == "dynamicforward")
	case kindPaths:
		ok = len(l.args) == 1 || !slices.ContainsFunc(l.args, isNone)
	}
	if !ok {
		return "the value of " + quoteName(l.key)
	}
	return ""
}

// plainForward is a forwarding between two TCP ports, which pvelens does not open.
func plainForward(args []string, dynamic bool) bool {
	from := fromShape.FindStringSubmatch(args[0])
	if from == nil {
		return false
	}
	_, ok := parsePort(from[2])
	if dynamic || !ok {
		return ok && len(args) == 1
	}
	if len(args) != 2 {
		return false
	}
	to := toShape.FindStringSubmatch(args[1])
	if to == nil {
		return false
	}
	_, ok = parsePort(to[1])
	return ok
}

func unprovenHost(patterns []string) string {
	for _, p := range patterns {
		if p == "!" || strings.Contains(p, "?") {
			return "? in a Host pattern"
		}
		if strings.ContainsFunc(p, func(r rune) bool { return r >= 0x80 }) {
			return "a Host pattern that is not ASCII"
		}
	}
	return ""
}

func isNone(s string) bool { return strings.EqualFold(s, "none") }
