package transport

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
)

func openAudit(t testing.TB, path string) *Audit {
	t.Helper()
	a, err := OpenAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func appendN(t testing.TB, a *Audit, n int) {
	t.Helper()
	for i := range n {
		if err := a.append(AuditLine{Event: "allowed", Node: "pve1", Form: "form" + strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func verifyFiles(t testing.TB, head string, paths ...string) (Chain, error) {
	t.Helper()
	var readers []io.Reader
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, bytes.NewReader(b))
	}
	return Verify(io.MultiReader(readers...), head)
}

func TestAuditLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "audit.jsonl")
	a := openAudit(t, path)
	a.now = func() time.Time { return time.Date(2026, 11, 29, 17, 0, 0, 1e6, time.FixedZone("", 3600)) }
	head, err := a.Start("v1")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Audit: a})
	defer p.Close()
	h := &Host{Target: targetAt("pve1", newServer(t).start().l.Addr()), Role: allowlist.PVE}
	p.Refused(h, &allowlist.Refusal{Class: allowlist.BadSlot, Form: "lxc-config", Slot: "{vmid}", Rule: "digits", Word: 1, Len: 7, Byte: `\x3b`})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid := os.Getpid()
	want := fmt.Sprintf(`{"at":"2026-11-29T16:00:00.001Z","pid":%d,"event":"start","version":"v1","allowlist":"%s","prev":"%s"}
{"at":"2026-11-29T16:00:00.001Z","pid":%d,"event":"refused","node":"pve1","role":"pve","form":"lxc-config","class":"bad-slot","slot":"{vmid}","length":7,"byte":"\\x3b","prev":"%s"}
`, pid, allowlist.Hash(), noPrev, pid, head)
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	for path, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %v", path, fi.Mode().Perm(), mode)
		}
	}
}

func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := openAudit(t, path)
	appendN(t, a, 3)
	head, err := a.Start("v1")
	if err != nil {
		t.Fatal(err)
	}
	appendN(t, a, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	join := func(parts ...[]string) string {
		s := ""
		for _, p := range parts {
			s += strings.Join(p, "")
		}
		return s
	}
	other := MemoryAudit()
	appendN(t, other, 7)
	rewritten := ""
	for _, l := range other.Lines() {
		rewritten += string(l.encode()) + "\n"
	}
	for _, tt := range []struct {
		name, log, head string
		want            string // part of the error
		lines           int
	}{
		{"whole", string(whole), "", "", 7},
		{"whole, noted head", string(whole), head, "", 7},
		{"empty", "", "", "", 0},
		{"empty, noted head", "", head, "in no line", 0},
		{"line changed", strings.Replace(string(whole), "form1", "form9", 1), "", "line 3: does not follow from line 2", 3},
		{"line removed", join(lines[:1], lines[2:]), "", "line 2: does not follow", 2},
		{"lines swapped", join(lines[:1], lines[2:3], lines[1:2], lines[3:]), "", "line 2: does not follow", 2},
		{"line added", join(lines[:3], lines[2:3], lines[3:]), "", "line 4: does not follow", 4},
		{"head cut off shows", join(lines[2:]), "", "", 5},
		{"tail cut off does not show", join(lines[:3]), "", "", 3},
		{"tail cut off, noted head", join(lines[:3]), head, "cut off or written anew", 3},
		{"rewritten does not show", rewritten, "", "", 7},
		{"rewritten, noted head", rewritten, head, "cut off or written anew", 7},
		{"garbage in the middle", join(lines[:2], []string{"garbage\n"}, lines[2:]), "", "line 4: does not follow", 4},
		{"torn end", string(whole) + `{"at":"20`, "", "line 8: the last line is torn", 8},
		{"two torn lines", "x\ny\n", "", "want a recovered line", 2},
		{"line without end", strings.Repeat("x", maxAuditLine+1), "", "line 1: ", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Verify(strings.NewReader(tt.log), tt.head)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || c.Lines != tt.lines {
				t.Errorf("got %+v, %v; want %d lines, error %q", c, err, tt.lines, tt.want)
			}
			if tt.name == "head cut off shows" && c.First == noPrev {
				t.Error("a log without its first lines looks whole")
			}
		})
	}
}

func TestTornLineIsRecovered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := openAudit(t, path)
	appendN(t, a, 2)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.IndexByte(b, '\n') + 1
	for cut := 1; cut < len(b)-second; cut++ {
		write(t, path, string(b[:len(b)-cut]))
		appendN(t, a, 2)
		c, err := verifyFiles(t, "", path)
		if err != nil || c.Recovered != 1 {
			t.Fatalf("cut %d: %+v, %v", cut, c, err)
		}
	}
}

func TestRotationKeepsTheChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, b := openAudit(t, path), openAudit(t, path)
	a.most, b.most = 5000, 5000
	head, err := a.Start("v1")
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		appendN(t, a, 1)
		appendN(t, b, 1)
	}
	var files []string
	for i := auditKept; i >= 1; i-- {
		if name := fmt.Sprintf("%s.%d", path, i); exists(name) {
			files = append(files, name)
		}
	}
	if len(files) < 2 {
		t.Fatalf("%d rotated files, want several", len(files))
	}
	c, err := verifyFiles(t, head, append(files, path)...)
	if err != nil || c.Lines != 81+len(files) {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = verifyFiles(t, "", path)
	last, _ := verifyFiles(t, "", files[len(files)-1])
	if err != nil || c.First != last.Head {
		t.Errorf("the new file does not follow from the old: %+v, %v", c, err)
	}
	for range 40 * auditKept {
		appendN(t, a, 1)
	}
	if exists(fmt.Sprintf("%s.%d", path, auditKept+1)) || !exists(fmt.Sprintf("%s.%d", path, auditKept)) {
		t.Errorf("want %d rotated files", auditKept)
	}
}

// TestFailedRotationKeepsTheLog: the log grows on where it is.
func TestFailedRotationKeepsTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := openAudit(t, path)
	a.most = 1000
	inTheWay := func(path string) {
		if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	inTheWay(path + ".new")
	appendN(t, a, 20)
	os.RemoveAll(path + ".new")
	for i := range auditKept {
		inTheWay(a.rotated(i + 1))
	}
	appendN(t, a, 20)
	if c, err := verifyFiles(t, "", path); err != nil || c.Lines != 40 {
		t.Errorf("%+v, %v", c, err)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// TestAuditOfManyProcesses starts the test program again as writers.
func TestAuditOfManyProcesses(t *testing.T) {
	const processes, lines = 4, 300
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	openAudit(t, path)
	var work sync.WaitGroup
	for range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TEST_AUDIT="+path, "TEST_AUDIT_LINES="+strconv.Itoa(lines))
		work.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	work.Wait()
	var files []string
	for i := auditKept; i >= 1; i-- {
		if name := fmt.Sprintf("%s.%d", path, i); exists(name) {
			files = append(files, name)
		}
	}
	files = append(files, path)
	c, err := verifyFiles(t, "", files...)
	if err != nil || c.Recovered != 0 || c.First != noPrev {
		t.Fatalf("%+v, %v", c, err)
	}
	count := map[int]int{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var l AuditLine
			if json.Unmarshal(sc.Bytes(), &l); l.Event == "allowed" {
				count[l.PID]++
			}
		}
		f.Close()
	}
	for pid, n := range count {
		if n != lines {
			t.Errorf("process %d: %d lines, want %d", pid, n, lines)
		}
	}
	if len(count) != processes || len(files) < 3 {
		t.Errorf("%d processes, %d files", len(count), len(files))
	}
}

// writeAudit is what the other processes do.
func writeAudit(path, lines string) error {
	a, err := OpenAudit(path)
	if err != nil {
		return err
	}
	a.most = 50 << 10
	n, err := strconv.Atoi(lines)
	for i := 0; i < n && err == nil; i++ {
		err = a.append(AuditLine{Event: "allowed", Node: "pve1", Form: "state"})
	}
	return err
}

func TestAuditThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open.jsonl")
	write(t, open, "")
	os.Chmod(open, 0o666)
	write(t, filepath.Join(dir, "file"), "")
	for name, path := range map[string]string{
		"a folder": dir, "below a file": filepath.Join(dir, "file", "audit.jsonl"), "a device": "/dev/null", "others can write": open,
	} {
		if _, err := OpenAudit(path); codeOf(err) != Config || !strings.Contains(err.Error(), "nothing runs") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	readable := write(t, filepath.Join(dir, "readable.jsonl"), "")
	os.Chmod(readable, 0o644)
	openAudit(t, readable)
	if fi, _ := os.Stat(readable); fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", fi.Mode().Perm())
	}
}

// FuzzVerify asserts that a log which verifies is one that was appended to: no
// changed byte inside a chain goes unseen.
func FuzzVerify(f *testing.F) {
	a := MemoryAudit()
	for i := range 4 {
		a.append(AuditLine{Event: "allowed", Form: strconv.Itoa(i)})
	}
	var log []byte
	for _, l := range a.Lines() {
		log = append(append(log, l.encode()...), '\n')
	}
	last := len(log) - len(a.Lines()[3].encode()) - 1
	f.Add(10, byte('x'))
	f.Add(last-1, byte(0))
	f.Fuzz(func(t *testing.T, at int, b byte) {
		if at < 0 || at >= last || log[at] == b || log[at] == '\n' && b == '\r' {
			return
		}
		bad := bytes.Clone(log)
		bad[at] = b
		if _, err := Verify(bytes.NewReader(bad), ""); err == nil {
			t.Errorf("byte %d changed to %q and it still verifies", at, b)
		}
	})
}
