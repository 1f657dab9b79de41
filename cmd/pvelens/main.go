// Command pvelens is a read-only lens on Proxmox VE and the Docker workloads
// inside its guests, over key-based SSH: an MCP server on stdio and a command
// line with the same answers.
//
// Exit status: 0 ok, 1 failed, 2 usage or invalid argument, 3 refused by the
// allowlist, 4 the answer is incomplete.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Getenv)
	stop()
	os.Exit(code)
}
