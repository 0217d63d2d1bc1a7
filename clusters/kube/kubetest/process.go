package kubetest

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"quorate.dev/quorate/internal/procgroup"
)

// process is a running program.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
}

// owner is a test or a lender. Programs are killed when their owner ends.
type owner interface {
	Helper()
	TempDir() string
	Cleanup(end func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// run starts a program and appends its output to a file. The program is killed no later than when its owner ends.
func run(t owner, logFile string, command *exec.Cmd) *process {
	t.Helper()
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = procgroup.WithParent()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{command, make(chan struct{})}
	go func() { _ = command.Wait(); close(p.exited) }()
	t.Cleanup(p.kill)
	return p
}

// stop interrupts the program, as an operator would, and waits until it has exited.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not exit", p.command.Path)
	}
}

// kill kills the program and waits until it has exited.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}
