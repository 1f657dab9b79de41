package parse

import (
	"bytes"
	"slices"
	"strings"
)

// A DockerTrouble is why a call of docker or podman gave no answer, or only part
// of one. None of them means "no containers".
type DockerTrouble string

// The kinds of trouble.
const (
	DockerOK           DockerTrouble = ""                   // the answer is whole
	DockerAbsent       DockerTrouble = "not-installed"      // the program is not there
	DockerStopped      DockerTrouble = "daemon-stopped"     // nothing listens on the socket: stopped, or rootless under /run/user, which root does not see
	DockerUnreachable  DockerTrouble = "daemon-unreachable" // a daemon that is asked over a network, or that does not answer in time
	DockerDenied       DockerTrouble = "permission-denied"  // the user may not use the socket or the program, or sudo wants a password
	DockerBadTemplate  DockerTrouble = "template-error"     // the table's template does not fit this version: our bug
	DockerIsPodman     DockerTrouble = "podman"             // podman answers under docker's name
	DockerVanished     DockerTrouble = "vanished"           // some of the IDs are gone; the others' lines are good
	DockerGuestStopped DockerTrouble = "guest-stopped"      // the container or VM around it does not run
	DockerGuestMissing DockerTrouble = "guest-missing"      // no such guest on this node
	DockerOther        DockerTrouble = "other"
)

// A DockerFailure is a classified call.
type DockerFailure struct {
	Trouble DockerTrouble
	Missing []string // of DockerVanished: the IDs that are gone, in the order asked, never nil
}

// dockerWords are searched in lower-cased stderr, line by line, in this order:
// the first kind that fits wins, whatever the exit status. The texts change
// between versions, so a few words of each must do; a warning about the client's
// own configuration file is no failure and is left out before.
var dockerWords = []struct {
	trouble DockerTrouble
	words   []string // all of them in one line
}{
	{DockerGuestStopped, []string{"container '", "' not running"}},
	{DockerGuestStopped, []string{"failed to get init pid"}},
	{DockerGuestStopped, []string{"failed to get attach context"}},
	{DockerGuestStopped, []string{"vm ", " is not running"}},
	{DockerGuestMissing, []string{"configuration file '", "' does not exist"}},
	{DockerDenied, []string{"permission denied while trying to connect"}},
	{DockerDenied, []string{"connect: permission denied"}},
	{DockerDenied, []string{"sudo:", "password is required"}},
	{DockerDenied, []string{"sudo:", "terminal is required"}},
	{DockerDenied, []string{"sudo:", "not allowed to"}},
	{DockerDenied, []string{"is not in the sudoers file"}},
	{DockerOther, []string{"failed to run command", "pct'"}},
	{DockerOther, []string{"failed to run command", "qm'"}},
	{DockerOther, []string{"sudo: /usr/"}},
	{DockerIsPodman, []string{"emulate docker cli using podman"}},
	{DockerIsPodman, []string{"psreporter"}},
	{DockerIsPodman, []string{"can't evaluate field", "*define.inspect"}},
	{DockerIsPodman, []string{"unable to connect to podman"}},
	{DockerBadTemplate, []string{"template parsing error"}},
	{DockerBadTemplate, []string{"failed to execute template"}},
	{DockerBadTemplate, []string{"can't evaluate field"}},
	{DockerBadTemplate, []string{"template:", "executing"}},
	{DockerBadTemplate, []string{"map has no entry for key"}},
	{DockerDenied, []string{"permission denied", "failed to exec \""}},
	{DockerDenied, []string{"failed to run command", "permission denied"}},
	{DockerAbsent, []string{"failed to exec \""}},
	{DockerAbsent, []string{"command not found"}},
	{DockerAbsent, []string{"docker: not found"}},
	{DockerAbsent, []string{"podman: not found"}},
	{DockerAbsent, []string{"failed to run command", "no such file"}},
	{DockerAbsent, []string{"failed to execute child process", "no such file"}},
	{DockerStopped, []string{"docker daemon", "connect", "unix://"}},
	{DockerStopped, []string{"docker api", "connect", "unix://"}},
	{DockerStopped, []string{"dial unix", "no such file"}},
	{DockerStopped, []string{"dial unix", "connection refused"}},
	{DockerUnreachable, []string{"docker daemon", "connect"}},
	{DockerUnreachable, []string{"docker api", "connect"}},
	{DockerUnreachable, []string{"unable to resolve docker endpoint"}},
	{DockerUnreachable, []string{"context deadline exceeded"}},
	{DockerUnreachable, []string{"i/o timeout"}},
	{DockerUnreachable, []string{"connection timed out"}},
}

// ClassifyDocker says why a call of program ("docker" or "podman") failed, from
// its exit status and what it printed: directly, through pct exec (whose own
// and lxc-attach's texts are known, LXC 4 to 6), or as the exitcode and err-data
// of qm guest exec. Checked on docker 20.10 to 29 and podman 4.3.
//
//	Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?
//
// Text on stderr with exit 0 is no failure: warnings stand there. Exit 0 from
// podman under docker's name is DockerIsPodman only if its notice is there; what
// it printed is good then. When qm itself failed, GuestAgentError knows why.
func ClassifyDocker(program string, exit int, stdout, stderr []byte) DockerFailure {
	f := DockerFailure{Missing: []string{}}
	lines := failureLines(stderr)
	if exit == 0 {
		if program == "docker" && anyLine(lines, "emulate docker cli using podman") {
			f.Trouble = DockerIsPodman
		}
		return f
	}
	f.Trouble = matchWords(program, lines)
	if f.Trouble != "" {
		return f
	}
	if f.Missing = vanished(lines); len(f.Missing) > 0 {
		f.Trouble = DockerVanished
		return f
	}
	f.Trouble = byExit(program, exit, stdout)
	return f
}

func matchWords(program string, lines []string) DockerTrouble {
	for _, w := range dockerWords {
		if !anyLine(lines, w.words...) {
			continue
		}
		if w.trouble == DockerIsPodman && program == "podman" {
			continue // it was podman that was asked; what else it says decides
		}
		return w.trouble
	}
	return ""
}

// byExit is what remains when the text is unknown, or in another language.
func byExit(program string, exit int, stdout []byte) DockerTrouble {
	switch {
	case exit == 127:
		return DockerAbsent
	case exit == 126:
		return DockerDenied // it is there, and may not be executed
	case exit == 64:
		return DockerBadTemplate
	case exit == 125 && program == "docker" && bytes.HasPrefix(stdout, []byte(`{"id":`)) && !bytes.HasSuffix(stdout, []byte("\n")):
		return DockerIsPodman // it prints up to the field that it does not know
	}
	return DockerOther
}

// failureLines returns the lines of stderr in lower case without those that
// only warn: a client that cannot read its own configuration goes on.
func failureLines(stderr []byte) []string {
	lines := []string{}
	for _, line := range strings.Split(strings.ToLower(string(stderr)), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "warning:") || strings.Contains(line, "level=warning") {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func anyLine(lines []string, words ...string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}

// vanished returns the IDs of "no such container: ID" (docker) and "no such
// container ID" (podman).
func vanished(lines []string) []string {
	ids := []string{}
	for _, line := range lines {
		_, rest, ok := strings.Cut(line, "no such container")
		if !ok {
			continue
		}
		id := strings.Trim(rest, `:"' `)
		if len(id) == 64 && strings.Trim(id, "0123456789abcdef") == "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
