package allowlist

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

type corpus struct {
	PermittedNear []string `json:"permitted_near"`
	Hostile       []string `json:"hostile"`
}

func hostile(t testing.TB) (c corpus) {
	b, err := os.ReadFile("testdata/hostile-commands.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &c); err != nil || len(c.Hostile) < 250 {
		t.Fatalf("%d strings, %v", len(c.Hostile), err)
	}
	return c
}

func TestHostileLines(t *testing.T) {
	c := hostile(t)
	for _, line := range c.Hostile {
		for _, role := range []Role{PVE, Docker, Both} {
			if got, err := CheckLine(role, line); err == nil {
				t.Errorf("%.200q: permitted as %s", line, got.ID())
			}
			if got, err := Check(role, line); err == nil {
				t.Errorf("%.200q as one word: permitted as %s", line, got.ID())
			}
		}
	}
	for _, line := range c.PermittedNear {
		if _, err := CheckLine(PVE, line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// Split at blanks, a hostile line is refused too, or its words are a permitted
// argv; what would be sent is then our own rendering.
func TestHostileWords(t *testing.T) {
	for _, line := range hostile(t).Hostile {
		words := strings.Fields(line)
		if c, err := Check(PVE, words...); err == nil && c.Line() != strings.Join(words, " ") {
			t.Errorf("%.200q: became %q", line, c.Line())
		}
	}
}
