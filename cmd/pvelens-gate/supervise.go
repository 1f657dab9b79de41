//go:build linux

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"pvelens/allowlist"
)

// grace is how long a command may take to end after TERM, and a file that it left
// open to close.
const grace = 2 * time.Second

const stderrCap = 64 << 10

// supervise runs a permitted command and returns the exit status. The command
// ends when its limit is reached, when it writes more than its cap, and when the
// client goes away: ending an SSH session alone would leave it running.
func supervise(c allowlist.Command) int {
	form := c.Form()
	stop := make(chan int, 4)                                     // one place for each who can ask
	out := &capped{to: os.Stdout, left: form.Cap + 1, stop: stop} // one more, so that the client sees the cut too
	cmd := &exec.Cmd{
		Path: find(c.Argv()[0]), Args: c.Argv(), Env: environment, Dir: "/",
		Stdout: out, Stderr: &capped{to: os.Stderr, left: stderrCap, stop: make(chan int, 1)},
		WaitDelay:   grace,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	watchSignals(stop)
	if err := cmd.Start(); err != nil {
		return fail(exitNoStart, "form %s: %v", c.ID(), err)
	}
	go watchClient(stop)
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the status is in ProcessState
		close(done)
	}()
	exit := 0
	select {
	case <-done:
		exit = status(cmd.ProcessState, out.full.Load())
	case exit = <-stop:
		end(cmd.Process.Pid, done)
	case <-time.After(form.Timeout()):
		exit = exitLimit
		end(cmd.Process.Pid, done)
	}
	switch exit {
	case exitLimit:
		fail(exit, "form %s: ended after %d s", c.ID(), form.Limit)
	case exitCap:
		fail(exit, "form %s: output cut after %d bytes", c.ID(), form.Cap+1)
	}
	return exit
}

// find returns where a program named without a path is in the fixed path.
func find(program string) string {
	if strings.HasPrefix(program, "/") {
		return program
	}
	dirs := strings.Split(path, ":")
	for _, dir := range dirs {
		if info, err := os.Stat(dir + "/" + program); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return dir + "/" + program
		}
	}
	return dirs[len(dirs)-1] + "/" + program // which is not there
}

func status(s *os.ProcessState, full bool) int {
	if full {
		return exitCap
	}
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// end asks the process group to end, then makes it; a process that not even KILL
// ends, because the kernel holds it, is not waited for.
func end(group int, done <-chan struct{}) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = syscall.Kill(-group, s)
		select {
		case <-done:
			return
		case <-time.After(grace):
		}
	}
}

// watchSignals also turns the death by a closed stdout into a reason to stop.
func watchSignals(stop chan<- int) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		stop <- exitGone
	}()
}

// watchClient waits until nobody can read stdout any more. End of stdin would not
// tell: clients end it at once. Where stdout is a file there is nothing to watch.
func watchClient(stop chan<- int) {
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	err = syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, 1, &syscall.EpollEvent{Fd: 1})
	for err == nil || err == syscall.EINTR {
		n := 0
		if n, err = syscall.EpollWait(poll, make([]syscall.EpollEvent, 1), -1); n > 0 { // ERR and HUP are always reported
			stop <- exitGone
			return
		}
	}
}

// capped passes on the first bytes and drops the rest.
type capped struct {
	to   *os.File
	left int
	stop chan<- int
	full atomic.Bool
}

func (w *capped) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	if _, err := w.to.Write(p[:n]); err != nil {
		return 0, err
	}
	if n < len(p) && !w.full.Swap(true) {
		w.stop <- exitCap
	}
	return len(p), nil
}
