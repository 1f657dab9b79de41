package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"docs", "--check", "--dir", root(t)}, stdio{out: &out, err: &out}, func(string) string { return "" }); code != exitOK {
		t.Errorf("docs --check: exit %d: %s", code, out.String())
	}
}

// TestSecurityNamesRealTests: each claim in SECURITY.md names tests that exist.
func TestSecurityNamesRealTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	err = filepath.WalkDir(root(t), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test[A-Za-z0-9]+|Fuzz[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 8 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, n := range names {
		if !strings.Contains(all.String(), "func "+n[1]+"(") {
			t.Errorf("SECURITY.md names %s, which is no test", n[1])
		}
	}
}

// TestNothingOfTheWorkshop: no path of a build machine stands in the project.
func TestNothingOfTheWorkshop(t *testing.T) {
	out, err := exec.Command("git", "-C", root(t), "ls-files").Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	bad := regexp.MustCompile(`/(work|farm)/(main|shared)|\.\./shared`)
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		b, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil || name == "cmd/pvelens/docs_test.go" {
			continue
		}
		if bad.Match(b) {
			t.Errorf("%s holds a path of a build machine", name)
		}
	}
}
