package parse

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// doubleEncode does what PVE does to a byte stream: each byte becomes a character.
func doubleEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func TestQemuGuestExec(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     GuestExec
		err      string
	}{
		{"recorded failure inside", string(captured(t, "guest-exec-exit3.json")), GuestExec{3, []byte("out\n"), []byte("err\n")}, ""},
		{"recorded success", string(captured(t, "guest-exec-uname.json")), GuestExec{0, []byte("Linux homeassistant 6.18.44-fc-v782 #1 SMP PREEMPT_DYNAMIC @0 x86_64 GNU/Linux\n"), []byte{}}, ""},
		{"encoded twice", `{"exited":1,"exitcode":0,"out-data":"f\u00c3\u00bcr \u00e2\u0082\u00ac"}`, GuestExec{0, []byte("für €"), []byte{}}, ""},
		{"encoded once", `{"exited":1,"exitcode":0,"out-data":"für €"}`, GuestExec{0, []byte("für €"), []byte{}}, ""},
		{"encoded once, and its low bytes are text", `{"exited":1,"exitcode":0,"out-data":"Ł"}`, GuestExec{0, []byte("Ł"), []byte{}}, ""},
		{"encoded once, Latin-1 alone", `{"exited":1,"exitcode":0,"out-data":"für"}`, GuestExec{0, []byte("für"), []byte{}}, ""},
		{"numbers as text, true as a flag", `{"exited":true,"exitcode":"1","out-truncated":"0"}`, GuestExec{1, []byte{}, []byte{}}, ""},
		{"ended by a signal", `{"exited":1,"signal":9}`, GuestExec{137, []byte{}, []byte{}}, ""},
		{"timed out", "{\n   \"pid\" : 1234\n}\n", GuestExec{}, ErrGuestExecTimeout.Error()},
		{"not ended", `{"exited":0}`, GuestExec{}, ErrGuestExecTimeout.Error()},
		{"cut stdout", `{"exited":1,"exitcode":0,"out-data":"x","out-truncated":1}`, GuestExec{}, ErrGuestExecTruncated.Error()},
		{"cut stderr", `{"exited":1,"exitcode":0,"err-truncated":true}`, GuestExec{}, ErrGuestExecTruncated.Error()},
		{"no exit code", `{"exited":1,"out-data":"x"}`, GuestExec{}, `qm guest exec: want "exitcode" or "signal"`},
		{"data of another kind", `{"exited":1,"exitcode":0,"out-data":["x"]}`, GuestExec{}, "out-data: want text"},
		{"nothing", "", GuestExec{}, "qm guest exec: want a JSON object, got nothing"},
		{"half", `{"exitcode":0,"out-da`, GuestExec{}, "got something else at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := QemuGuestExec([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
		})
	}
}

func TestGuestAgentError(t *testing.T) {
	for _, tc := range []struct {
		name   string
		exit   int
		stderr string
		want   AgentTrouble
	}{
		{"answered", 0, "", AgentOK},
		{"answered with a warning", 0, "Use of uninitialized value in concatenation", AgentOK},
		{"not running", 255, "QEMU guest agent is not running\n", AgentSilent},
		{"not configured", 255, "No QEMU guest agent configured\n", AgentOff},
		{"VM stopped", 255, "VM 201 is not running\n", AgentVMStopped},
		{"no such VM", 2, "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist", AgentVMMissing},
		{"stopped answering", 255, "VM 200 qga command 'guest-exec' failed - got timeout", AgentTimedOut},
		{"returned the pid", 0, "timeout reached, returning pid\n", AgentTimedOut},
		{"RHEL 8", 255, "Agent error: Guest agent command failed, error was 'The command guest-exec has been disabled for this instance'", AgentBlocked},
		{"RHEL 9", 255, "Agent error: Guest agent command failed, error was 'Command guest-exec has been disabled: the command is not allowed'", AgentBlocked},
		{"during a backup", 255, "Agent error: Guest agent command failed, error was 'Command guest-exec has been disabled: the agent is in frozen state'", AgentFrozen},
		{"an old agent", 255, "Agent error: Guest agent command failed, error was 'The command guest-network-get-interfaces has not been found'", AgentUnsupported},
		{"no such program", 255, "Wide character in die at /usr/share/perl5/PVE/RESTHandler.pm line 1131.\nAgent error: Guest agent command failed, error was 'Failed to execute child process “docker” (No such file or directory)'", AgentNoProgram},
		{"SELinux", 255, "Agent error: Guest agent command failed, error was 'Failed to execute child process “docker” (Permission denied)'", AgentBlocked},
		{"a program of another machine", 255, "Agent error: Guest agent command failed, error was 'Failed to execute child process “docker” (Exec format error)'", AgentOther},
		{"something new", 255, "something new", AgentOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			diff(t, tc.want, GuestAgentError(tc.exit, []byte(tc.stderr)))
		})
	}
}

// Law: what the guest printed comes back byte for byte, encoded twice or (with
// a character beyond Latin-1, or ASCII alone) once.
func FuzzQemuGuestExec(f *testing.F) {
	for _, s := range append([]string{"für €", "plain", "\x00\x01", "Ã¼", string(captured(f, "guest-exec-uname.json"))}, garbage...) {
		f.Add(s, []byte(s))
	}
	f.Fuzz(func(t *testing.T, s string, out []byte) {
		if got, err := QemuGuestExec(out); err != nil && (got.Stdout != nil || got.Stderr != nil) {
			t.Fatal("an error and output")
		}
		s = strings.ToValidUTF8(s, "")
		data, err := json.Marshal(map[string]any{"exited": 1, "exitcode": 0, "out-data": doubleEncode(s)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := QemuGuestExec(data)
		if err != nil || string(got.Stdout) != s {
			t.Fatalf("got %q (%v), want %q", got.Stdout, err, s)
		}
		if _, err := QemuGuestExec([]byte(`{"pid":1}`)); !errors.Is(err, ErrGuestExecTimeout) {
			t.Fatal(err)
		}
	})
}
