//go:build linux

// Command pvelens-gate is the lock on the node's side: it enforces the table of
// package allowlist, the same that the client enforces, on whatever a key may ask.
//
//	restrict,command="/usr/local/libexec/pvelens-gate" ssh-ed25519 …   in authorized_keys
//	pvelens ALL=(root) NOPASSWD: /usr/local/libexec/pvelens-gate       in sudoers
//
// As a forced command it reads SSH_ORIGINAL_COMMAND, which must be the exact line
// that the client renders for a permitted command. Called with words, as through
// sudo, it compares them one by one. Nothing is split, expanded or configured, no
// shell is started, and no other variable of the environment is read.
//
// Exit status: the command's own (128+N when signal N ended it); 124 its time
// limit; 126 refused; 127 not started; 129 the client went away; 153 more output
// than the form's cap.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"pvelens/allowlist"
)

const (
	exitLimit   = 124
	exitRefused = 126
	exitNoStart = 127
	exitGone    = 129
	exitCap     = 153

	sudo = "/usr/bin/sudo"
	path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// environment is all that a command sees of one. HOME is nobody's, so that no
// configuration file of a user redirects docker or podman.
var environment = []string{"PATH=" + path, "LC_ALL=C.UTF-8", "HOME=/"}

var (
	version = "" // set by the release build
	syslog  = "/dev/log"
)

func main() {
	runtime.LockOSThread() // Pdeathsig watches the thread that starts the command
	os.Exit(gate(os.Args[1:], os.Getenv("SSH_ORIGINAL_COMMAND")))
}

func gate(words []string, line string) int {
	if len(words) == 1 && words[0] == "--version" {
		return printVersion()
	}
	c, err := judge(thisHost(), words, line)
	if err != nil {
		logRefusal(err, max(len(line), len(strings.Join(words, " "))))
		return fail(exitRefused, "%v", err)
	}
	if c.ID() == "gate-version" {
		return printVersion()
	}
	if c.Form().Rights == allowlist.Root && os.Geteuid() != 0 {
		argv := append([]string{sudo, "-n", allowlist.GatePath}, c.Argv()...)
		err := syscall.Exec(sudo, argv, environment) // the gate that it starts does the rest
		return fail(exitNoStart, "form %s needs root: %s: %v", c.ID(), sudo, err)
	}
	return supervise(c)
}

// A host is what a command is compared with beside the table.
type host struct {
	role allowlist.Role
	name string
}

// thisHost takes the role from what is installed: where pvesh is, the host is a
// Proxmox node and the forms of Docker hosts are refused. /etc/pve would tell too,
// but asking it hangs when the cluster filesystem does.
func thisHost() host {
	h := host{role: allowlist.Both}
	if _, err := os.Lstat("/usr/bin/pvesh"); err == nil {
		h.role = allowlist.PVE
	}
	name, _ := os.Hostname()
	h.name, _, _ = strings.Cut(name, ".") // as Proxmox names a node
	return h
}

// judge returns the command that words, or else line, ask for, or a
// *allowlist.Refusal.
func judge(h host, words []string, line string) (allowlist.Command, error) {
	c, err := allowlist.CheckLine(h.role, line)
	if len(words) > 0 {
		c, err = allowlist.Check(h.role, words...)
	}
	if err != nil {
		return allowlist.Command{}, err
	}
	if c.Form().ClientOnly() {
		return allowlist.Command{}, &allowlist.Refusal{Class: allowlist.NoForm, Form: c.ID(), Rule: "a gate refuses this form by design", Word: -1}
	}
	if node := c.Node(); node != "" && node != h.name {
		return allowlist.Command{}, &allowlist.Refusal{Class: allowlist.BadSlot, Form: c.ID(), Slot: "{node}", Rule: "on a node it is the node's own host name", Word: -1, Len: len(node)}
	}
	return c, nil
}

// fail says one line on stderr; it never holds a word of what was asked.
func fail(exit int, format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "pvelens-gate: "+format+"\n", args...)
	return exit
}

// logRefusal sends one line to the system log: the class, the form and the
// length, never the words. A log that does not answer is not waited for.
func logRefusal(err error, length int) {
	fd, e := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if e != nil {
		return
	}
	defer syscall.Close(fd)
	const authprivWarning = 10<<3 | 4
	msg := fmt.Sprintf("<%d>%s pvelens-gate[%d]: %v (uid %d, %d bytes)", authprivWarning, time.Now().Format(time.Stamp), os.Getpid(), err, os.Getuid(), length)
	_ = syscall.Sendto(fd, []byte(msg), syscall.MSG_NOSIGNAL, &syscall.SockaddrUnix{Name: syslog})
}

// printVersion writes the version, the table's hash and each form's as JSON.
func printVersion() int {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	forms := map[string]string{}
	for _, f := range allowlist.Forms() {
		forms[f.ID] = allowlist.FormHash(f)
	}
	answer := map[string]any{"version": version, "allowlist_sha256": allowlist.Hash(), "forms": forms}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		return fail(exitNoStart, "version: %v", err)
	}
	return 0
}
