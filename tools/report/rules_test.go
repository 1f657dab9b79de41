package report

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestTheCatalogueIsDataOnly(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "findings.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Imports) > 0 {
		t.Error("findings.go imports something")
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit, *ast.CallExpr:
			t.Errorf("findings.go holds code: %T", n)
		}
		return true
	})
}

func TestTheCatalogueIsSound(t *testing.T) {
	if !slices.IsSortedFunc(Catalogue, func(a, b Rule) int { return cmp.Compare(a.Code, b.Code) }) {
		t.Error("the catalogue is not in alphabetical order")
	}
	code := regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)
	for i, r := range Catalogue {
		if i > 0 && Catalogue[i-1].Code == r.Code {
			t.Errorf("%s stands twice", r.Code)
		}
		if !code.MatchString(r.Code) || r.Severity.Rank() < 0 || r.Why == "" || r.Fix == "" {
			t.Errorf("%s: code, severity, why or fix", r.Code)
		}
		limits := r.Info != 0 || r.Warning != 0 || r.Critical != 0
		if limits != (r.Compare != "") || limits != (r.Unit != "") {
			t.Errorf("%s: limits, compare and unit go together", r.Code)
		}
		if strings.Contains(r.Why+r.Fix, "\n") || strings.Contains(r.Why+r.Fix, "|") {
			t.Errorf("%s: text that breaks a table", r.Code)
		}
		order := []float64{r.Info, r.Warning, r.Critical}
		order = slices.DeleteFunc(order, func(x float64) bool { return x == 0 })
		if r.Compare == "<=" {
			slices.Reverse(order)
		}
		if !slices.IsSorted(order) {
			t.Errorf("%s: limits out of order", r.Code)
		}
	}
}

func TestMeasureIsTrueAtItsLimit(t *testing.T) {
	p := func(x float64) *float64 { return &x }
	judge := Judge{Limits: map[string]Limit{"STORAGE_FULL": {Warning: p(50)}}, Ignore: []string{"SNAPSHOT_OLD:101", "SMART_WEAR"}}
	for _, c := range []struct {
		code, subject string
		value         float64
		want          Severity
		threshold     string
	}{
		{"NODE_MEM_OVERCOMMIT", "node/a", 1, "", ""},
		{"NODE_MEM_OVERCOMMIT", "node/a", 1.01, Info, "> 1 ratio (default)"},
		{"NODE_MEM_OVERCOMMIT", "node/a", 1.5, Info, "> 1 ratio (default)"},
		{"NODE_MEM_OVERCOMMIT", "node/a", 1.51, Warning, "> 1.5 ratio (default)"},
		{"NODE_CPU_OVERCOMMIT", "node/a", 4, "", ""},
		{"NODE_CPU_OVERCOMMIT", "node/a", 4.01, Warning, "> 4 ratio (default)"},
		{"STORAGE_FULL", "storage/a/b", 49.9, "", ""},
		{"STORAGE_FULL", "storage/a/b", 50, Warning, ">= 50 percent (profile)"},
		{"STORAGE_FULL", "storage/a/b", 95, Critical, ">= 95 percent (default)"},
		{"SNAPSHOT_OLD", "guest/101", 100, "", ""},
		{"SNAPSHOT_OLD", "guest/1010", 100, Warning, "> 7 days (default)"},
		{"SMART_WEAR", "node/a", 1, "", ""},
		{"CERT_EXPIRING", "node/a", 30, Warning, "<= 30 days (default)"},
		{"CERT_EXPIRING", "node/a", 31, "", ""},
		{"CERT_EXPIRING", "node/a", -1, Critical, "<= 7 days (default)"},
	} {
		f := judge.Measure(c.code, c.subject, "m", "v", c.value)
		if (f == nil) != (c.want == "") || f != nil && (f.Severity != c.want || f.Threshold != c.threshold) {
			t.Errorf("%s %s %v: got %+v, want %s %s", c.code, c.subject, c.value, f, c.want, c.threshold)
		}
	}
}

func TestFindingsStandOnceWorstFirst(t *testing.T) {
	var j Judge
	got := Findings(nil, j.Find("GUEST_PAUSED", "", "guest/2", "b"), j.Find("GUEST_IO_ERROR", "", "guest/9", "c"), j.Find("GUEST_PAUSED", "", "guest/2", "b"), j.Find("GUEST_PAUSED", "", "guest/1", "a"))
	var order []string
	for _, f := range got {
		order = append(order, f.Code+" "+f.Subject)
		if f.Evidence == nil {
			t.Error("evidence is nil")
		}
	}
	want := []string{"GUEST_IO_ERROR guest/9", "GUEST_PAUSED guest/1", "GUEST_PAUSED guest/2"}
	if d := gocmp.Diff(want, order); d != "" {
		t.Error(d)
	}
	if Findings() == nil {
		t.Error("no findings are nil, not an empty list")
	}
}
