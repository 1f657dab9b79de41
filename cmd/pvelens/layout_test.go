package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type goPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	IgnoredGoFiles  []string
}

// packages are the module's packages with the imports of their non-test files.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,IgnoredGoFiles", "pvelens/...")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// mayImport says which of our packages each one may import.
var mayImport = map[string][]string{
	"pvelens/allowlist":          {},
	"pvelens/profiles":           {},
	"pvelens/transport":          {"pvelens/allowlist", "pvelens/profiles"},
	"pvelens/tools/parse":        {},
	"pvelens/tools/report":       {"pvelens/tools/parse"},
	"pvelens/tools":              {"pvelens/allowlist", "pvelens/profiles", "pvelens/transport", "pvelens/tools/parse", "pvelens/tools/report"},
	"pvelens/fixtures":           {"pvelens/allowlist"},
	"pvelens/fixtures/scenarios": {"pvelens/allowlist", "pvelens/fixtures"},
	"pvelens/cmd/pvelens-gate":   {"pvelens/allowlist"},
}

func TestImportsFollowTheLayout(t *testing.T) {
	for _, p := range packages(t) {
		allowed, listed := mayImport[p.ImportPath]
		if !listed && p.ImportPath != "pvelens/cmd/pvelens" {
			t.Errorf("%s has no line in the layout", p.ImportPath)
		}
		for _, i := range p.Imports {
			ours := strings.HasPrefix(i, "pvelens/")
			switch {
			case listed && ours && !slices.Contains(allowed, i):
				t.Errorf("%s imports %s", p.ImportPath, i)
			case p.ImportPath == "pvelens/allowlist" && strings.Contains(i, "."),
				p.ImportPath == "pvelens/cmd/pvelens-gate" && strings.Contains(i, "."):
				t.Errorf("%s imports %s: standard library only", p.ImportPath, i)
			case p.ImportPath == "pvelens/tools/parse" && (i == "net" || i == "os" || i == "net/http" || i == "os/exec"),
				p.ImportPath == "pvelens/tools/report" && (i == "net" || i == "os" || i == "os/exec"):
				t.Errorf("%s imports %s: it is pure", p.ImportPath, i)
			case strings.HasPrefix(i, "golang.org/x/crypto/ssh") && p.ImportPath != "pvelens/transport" && !strings.HasPrefix(p.ImportPath, "pvelens/fixtures"):
				t.Errorf("%s imports %s", p.ImportPath, i)
			case strings.HasPrefix(i, "github.com/modelcontextprotocol/") && p.ImportPath != "pvelens/tools":
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

// oneFile says where an import or a call may stand at all.
var oneFile = map[string][]string{
	`"os/exec"`:     {"profiles/openssh.go", "transport/proxycommand.go", "cmd/pvelens-gate/supervise.go"},
	"syscall.Exec":  {"cmd/pvelens-gate/main.go"}, // the gate starts itself as root
	"ForkExec(":     nil,
	"StartProcess(": nil,
	`"plugin"`:      nil,
	`"unsafe"`:      nil,
	"go:linkname":   nil,
	`"github.com/modelcontextprotocol/go-sdk/`: {"tools/mcp.go"},
}

func TestSomeThingsStandInOneFileOnly(t *testing.T) {
	base := root(t)
	for _, p := range packages(t) {
		for _, name := range append(slices.Clone(p.GoFiles), p.IgnoredGoFiles...) {
			path := filepath.Join(p.Dir, name)
			rel, err := filepath.Rel(base, path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for word, files := range oneFile {
				if strings.Contains(string(text), word) && !slices.Contains(files, filepath.ToSlash(rel)) {
					t.Errorf("%s holds %s", rel, word)
				}
			}
			pure := p.ImportPath == "pvelens/tools/parse" || p.ImportPath == "pvelens/tools/report"
			if pure && strings.Contains(string(text), "time.Now(") {
				t.Errorf("%s reads the clock", rel)
			}
			if p.ImportPath == "pvelens/tools" && strings.Contains(string(text), "fmt.Print") {
				t.Errorf("%s prints: standard output is the protocol", rel)
			}
		}
	}
}

func TestTopLevelHoldsWhatTheLayoutNames(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("cmd transport allowlist tools profiles fixtures go.mod go.sum Justfile README.md SECURITY.md LICENSE CHANGELOG.md")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(want, e.Name()) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}
