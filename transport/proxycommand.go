package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A proxy is a ProxyCommand as a net.Conn: its stdin and stdout carry the bytes.
// It runs only when the profile permits local commands; then the target has it.
type proxy struct {
	cmd    *exec.Cmd
	in     *os.File // we write
	out    *os.File // we read
	stderr limited
	exited chan struct{}
	once   sync.Once
}

// startProxy starts command as OpenSSH does: $SHELL -c "exec command", in a
// process group of its own.
func startProxy(shell, command string) (net.Conn, error) {
	if !filepath.IsAbs(shell) {
		shell = "/bin/sh"
	}
	p := &proxy{stderr: limited{most: 4 << 10}, exited: make(chan struct{})}
	p.cmd = exec.Command(shell, "-c", "exec "+command)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second // a child of it may hold stderr open
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		closeAll(theirIn, in)
		return nil, err
	}
	p.in, p.out, p.cmd.Stdin, p.cmd.Stdout = in, out, theirIn, theirOut
	err = p.cmd.Start()
	closeAll(theirIn, theirOut)
	if err != nil {
		closeAll(in, out)
		return nil, &Error{Code: Config, Message: "ProxyCommand cannot be started: " + err.Error(), Hint: "correct SHELL or ProxyCommand"}
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (p *proxy) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *proxy) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the command and everything it started.
func (p *proxy) Close() error {
	p.once.Do(func() {
		closeAll(p.in, p.out)
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		go func() {
			select {
			case <-p.exited:
			case <-time.After(500 * time.Millisecond):
			}
			syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		}()
	})
	return nil
}

// why says how the command ended, if it did, for an error's text.
func (p *proxy) why() string {
	text := p.stderr.bytes()
	select {
	case <-p.exited:
	case <-time.After(100 * time.Millisecond):
	}
	if len(text) == 0 {
		text = p.stderr.bytes()
	}
	if len(text) == 0 {
		return ""
	}
	return "ProxyCommand said " + said(text)
}

type proxyAddr struct{}

func (proxyAddr) Network() string { return "proxycommand" }
func (proxyAddr) String() string  { return "proxycommand" }

func (p *proxy) LocalAddr() net.Addr  { return proxyAddr{} }
func (p *proxy) RemoteAddr() net.Addr { return proxyAddr{} }
func (p *proxy) SetDeadline(t time.Time) error {
	return errors.Join(p.in.SetDeadline(t), p.out.SetDeadline(t))
}
func (p *proxy) SetReadDeadline(t time.Time) error  { return p.out.SetDeadline(t) }
func (p *proxy) SetWriteDeadline(t time.Time) error { return p.in.SetDeadline(t) }

// knownHostsCommand returns the lines that a KnownHostsCommand prints. It is run
// once, before the server's key is seen, so the tokens about that key are NONE.
func knownHostsCommand(ctx context.Context, command, name string) ([]byte, error) {
	if strings.ContainsAny(command, "\"'\\") {
		return nil, &Error{Code: Unsupported, Message: "KnownHostsCommand: quotes and backslashes are not understood", Hint: "put the command into a script, and name that"}
	}
	words := strings.Fields(command)
	for i, w := range words {
		words[i] = strings.NewReplacer("%%", "%", "%H", name, "%I", "ORDER", "%f", "NONE", "%K", "NONE", "%t", "NONE").Replace(w)
	}
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil, &Error{Code: Config, Message: "KnownHostsCommand: want an absolute path", Hint: "correct it in ssh_config"}
	}
	var out, errs limited
	out.most, errs.most = 1<<20, 4<<10
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, &Error{Code: Config, Message: fmt.Sprintf("KnownHostsCommand failed: %v; it said %s", err, said(errs.bytes())), Hint: "try it in a terminal, or remove it from ssh_config", Err: err}
	}
	return out.bytes(), nil
}
