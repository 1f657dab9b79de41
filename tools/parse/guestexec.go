package parse

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// A GuestExec is a program's end inside a VM, as qm guest exec reports it. The
// exit status of qm itself is 0 whatever the program did.
type GuestExec struct {
	Exit   int // 128 + the signal's number when a signal ended it
	Stdout []byte
	Stderr []byte
}

// What qm guest exec can say instead of an answer.
var (
	// ErrGuestExecTimeout: the program still runs in the guest; asking again at
	// once would start it a second time.
	ErrGuestExecTimeout = errors.New("qm guest exec: the program did not end in time")
	// ErrGuestExecTruncated: the agent cut a stream (it keeps 16 MiB of each).
	ErrGuestExecTruncated = errors.New("qm guest exec: the output was cut")
)

// QemuGuestExec reads what qm guest exec prints (PVE 7 to 9):
//
//	{"err-data":"err\n","err-truncated":0,"exitcode":3,"exited":1,"out-data":"out\n","out-truncated":0}
//
// A bare {"pid":N} is ErrGuestExecTimeout, a cut stream ErrGuestExecTruncated.
// Text beyond ASCII, which PVE encodes twice since 2022, is repaired.
func QemuGuestExec(out []byte) (GuestExec, error) {
	const what = "qm guest exec"
	o, err := jsonOne(what, out)
	if err != nil {
		return GuestExec{}, err
	}
	if exited := o.flag("exited"); exited != nil && !*exited || exited == nil && o.has("pid") {
		return GuestExec{}, ErrGuestExecTimeout
	}
	if o.yes("out-truncated") || o.yes("err-truncated") {
		return GuestExec{}, ErrGuestExecTruncated
	}
	exit, signal := smallInt(o.integer("exitcode")), smallInt(o.integer("signal"))
	switch {
	case exit == nil && signal != nil:
		exit = new(128 + *signal)
	case exit == nil:
		return GuestExec{}, fmt.Errorf("%s: want %q or %q", what, "exitcode", "signal")
	}
	e := GuestExec{Exit: *exit, Stdout: repairTwiceEncoded(o.text("out-data")), Stderr: repairTwiceEncoded(o.text("err-data"))}
	if len(*o.notes) > 0 {
		return GuestExec{}, fmt.Errorf("%s: %s", what, (*o.notes)[0])
	}
	return e, nil
}

// repairTwiceEncoded takes each character as the byte it once was and reads the
// bytes as UTF-8. Text with a character above U+00FF, or whose bytes are no
// UTF-8, was encoded once and stays.
func repairTwiceEncoded(s string) []byte {
	raw := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return []byte(s)
		}
		raw = append(raw, byte(r))
	}
	if !utf8.Valid(raw) {
		return []byte(s)
	}
	return raw
}

// An AgentTrouble is why a VM's guest agent gave no answer.
type AgentTrouble string

// The kinds of trouble. All of them leave what was asked unknown.
const (
	AgentOK          AgentTrouble = ""
	AgentSilent      AgentTrouble = "not-running"    // configured, but it does not answer
	AgentOff         AgentTrouble = "not-configured" // the VM's configuration has no agent
	AgentVMStopped   AgentTrouble = "vm-stopped"
	AgentVMMissing   AgentTrouble = "vm-missing"  // no such VM on this node
	AgentTimedOut    AgentTrouble = "timed-out"   // it answered the first ping, then no more
	AgentBlocked     AgentTrouble = "blocked"     // the guest forbids the command or the program, as RHEL and its relatives do
	AgentFrozen      AgentTrouble = "frozen"      // filesystems are frozen, a backup is being made
	AgentUnsupported AgentTrouble = "unsupported" // the agent does not know the command
	AgentNoProgram   AgentTrouble = "no-program"  // guest-exec: the program is not there
	AgentOther       AgentTrouble = "other"
)

var agentWords = []struct {
	trouble AgentTrouble
	words   []string
}{
	{AgentOff, []string{"no qemu guest agent configured"}},
	{AgentSilent, []string{"guest agent is not running"}},
	{AgentVMStopped, []string{"vm ", " not running"}},
	{AgentVMMissing, []string{"configuration file '", "' does not exist"}},
	{AgentFrozen, []string{"frozen"}},
	{AgentFrozen, []string{"fsfreeze"}},
	{AgentBlocked, []string{"has been disabled"}},
	{AgentBlocked, []string{"command is not allowed"}},
	{AgentUnsupported, []string{"has not been found"}},
	{AgentUnsupported, []string{"not supported"}},
	{AgentUnsupported, []string{"unsupported"}},
	{AgentBlocked, []string{"failed to execute child process", "permission denied"}},
	{AgentNoProgram, []string{"failed to execute child process", "no such file"}},
	{AgentTimedOut, []string{"got timeout"}},
	{AgentTimedOut, []string{"timeout reached"}},
}

// GuestAgentError classifies a failed question to a VM's agent, by pvesh or by
// qm guest exec (PVE 7 to 9), from the exit status and stderr:
//
//	QEMU guest agent is not running
//
// With exit 0 only "timeout reached, returning pid" is a trouble.
func GuestAgentError(exit int, stderr []byte) AgentTrouble {
	lines := failureLines(stderr)
	if exit == 0 {
		if anyLine(lines, "timeout reached") {
			return AgentTimedOut
		}
		return AgentOK
	}
	for _, w := range agentWords {
		if anyLine(lines, w.words...) {
			return w.trouble
		}
	}
	return AgentOther
}
