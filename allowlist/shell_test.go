package allowlist

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const echoArgv = "PVELENS_TEST_ECHO_ARGV"

// TestMain lets the test binary stand in for a program: it prints its words, a
// NUL after each, and an empty one last.
func TestMain(m *testing.M) {
	if os.Getenv(echoArgv) == "" {
		os.Exit(m.Run())
	}
	fmt.Print(strings.Join(append(os.Args[1:], "", ""), "\x00"))
}

var shells = [][]string{{"sh"}, {"bash"}, {"dash"}, {"zsh"}, {"fish"}, {"tcsh"}, {"ksh"}, {"mksh"}, {"busybox", "ash"}}

// Every login shell splits a line into the words it was rendered from.
func TestEveryShellReadsTheSameWords(t *testing.T) {
	var lines []string
	var want []string
	for _, f := range forms {
		for _, words := range sampled(f) {
			c, err := Check(hostRole(f), words...)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, c.Line())
			want = append(want, strings.Join(words, "\x00"))
		}
	}
	for i := range 40 {
		words := nastyWords(uint64(i))
		quoted := make([]string, len(words))
		for j, w := range words {
			quoted[j] = quote(w)
		}
		lines = append(lines, strings.Join(quoted, " "))
		want = append(want, strings.Join(words, "\x00"))
	}
	for _, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			path, err := exec.LookPath(shell[0])
			if err != nil && os.Getenv("CI") == "true" {
				t.Fatalf("install %s", shell[0])
			} else if err != nil {
				t.Skipf("install %s", shell[0])
			}
			got := runLines(t, append([]string{path}, shell[1:]...), lines)
			if len(got) != len(want) {
				t.Fatalf("got %d lines, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%.300s: got %.300q, want %.300q", lines[i], got[i], want[i])
				}
			}
		})
	}
}

// runLines has the shell run each line with our program in front, as many at a
// time as one argument can hold.
func runLines(t *testing.T, shell, lines []string) (got []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var batch []string
	size := 0
	flush := func() {
		if len(batch) == 0 {
			return
		}
		cmd := exec.Command(shell[0], append(shell[1:], "-c", strings.Join(batch, "; "))...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8", echoArgv + "=1", "GORACE=atexit_sleep_ms=0"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
		}
		got = append(got, strings.Split(strings.TrimSuffix(string(out), "\x00\x00"), "\x00\x00")...)
		batch, size = nil, 0
	}
	for _, line := range lines {
		if size+len(line) > 60*kib {
			flush()
		}
		batch = append(batch, quote(self)+" "+line)
		size += len(line) + len(self) + 3
	}
	flush()
	return got
}

// nastyWords is ten words of printable ASCII in which syntax is frequent.
func nastyWords(seed uint64) (words []string) {
	const syntax = "'\"\\!$`{}[]()<>|&;*?~#^=%@: \\'!"
	r := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		b := make([]byte, 1+r.IntN(20))
		for i := range b {
			b[i] = byte(0x20 + r.IntN(0x5f))
			if r.IntN(2) == 0 {
				b[i] = syntax[r.IntN(len(syntax))]
			}
		}
		words = append(words, string(b))
	}
	return words
}
