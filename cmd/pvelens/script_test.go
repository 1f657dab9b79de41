package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if node := os.Getenv("PVELENS_TEST_NODE"); node != "" {
		os.Exit(forcedCommand(node, os.Getenv("SSH_ORIGINAL_COMMAND")))
	}
	if program := os.Getenv(standIn); program != "" {
		os.Exit(standInProgram(program, os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"pvelens": func() {
			os.Exit(run(context.Background(), os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Getenv))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PVELENS_HOME", e.WorkDir+"/conf")
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			return os.MkdirAll(e.WorkDir+"/conf", 0o700)
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
