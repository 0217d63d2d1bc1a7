//go:build linux

package machine

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// supervisor keeps processes running and reaps every process of the machine that ends.
type supervisor struct {
	processes []Process

	mu      sync.Mutex // held while a process is started and added to waiting
	waiting map[int]chan syscall.WaitStatus
	status  []ProcessStatus
}

func newSupervisor(processes []Process) *supervisor {
	s := &supervisor{processes: processes, waiting: map[int]chan syscall.WaitStatus{}}
	for _, p := range processes {
		s.status = append(s.status, ProcessStatus{Name: p.Name})
	}
	return s
}

func (s *supervisor) run() {
	s.update(func() {})
	for i := range s.processes {
		go s.keep(i)
	}
	s.reap()
}

// reap reaps processes and never returns. PID 1 of a PID namespace must also reap orphaned processes.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.ECHILD {
			time.Sleep(50 * time.Millisecond) // nothing is running yet
			continue
		}
		if err != nil {
			continue
		}
		s.mu.Lock()
		if exited, ours := s.waiting[pid]; ours {
			delete(s.waiting, pid)
			exited <- status
		}
		s.mu.Unlock()
	}
}

// A process that has run for longer than steady is restarted after fastest. Otherwise, the delay doubles each time, up
// to slowest.
const (
	steady  = 20 * time.Second
	fastest = 200 * time.Millisecond
	slowest = 5 * time.Second
)

func (s *supervisor) keep(i int) {
	p, pause := s.processes[i], fastest
	for {
		s.await(i)
		began := time.Now()
		exit, err := s.runOnce(i)
		if err == nil && p.Once && exit.Exited() && exit.ExitStatus() == 0 {
			s.update(func() { s.status[i].PID, s.status[i].Done = 0, true })
			return
		}
		how := describe(exit, err)
		slog.Warn("process ended", "process", p.Name, "how", how)
		s.update(func() {
			s.status[i].PID = 0
			s.status[i].Restarts++
			s.status[i].LastExit = how
		})
		if time.Since(began) > steady {
			pause = fastest
		}
		time.Sleep(pause)
		pause = min(2*pause, slowest)
	}
}

// await blocks until all conditions in After of process i are met.
func (s *supervisor) await(i int) {
	for _, condition := range s.processes[i].After {
		if s.holds(condition) {
			continue
		}
		s.update(func() { s.status[i].Waiting = condition })
		for !s.holds(condition) {
			time.Sleep(20 * time.Millisecond)
		}
	}
	s.update(func() { s.status[i].Waiting = "" })
}

func (s *supervisor) holds(condition string) bool {
	target, err := url.Parse(condition)
	if err != nil {
		slog.Error("parse the start conditions of a process", "error", err)
		return false
	}
	switch target.Scheme {
	case "tcp":
		return answers("tcp", target.Host)
	case "unix":
		return answers("unix", target.Path)
	case "https":
		return serves(condition)
	default:
		return s.done(filepath.Base(target.Path))
	}
}

func answers(network, address string) bool {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// serves reports whether url returns status 200. It does not verify the server's certificate, because only the status
// matters.
func serves(url string) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (s *supervisor) done(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range s.status {
		if status.Name == name {
			return status.Done
		}
	}
	return false
}

func (s *supervisor) runOnce(i int) (syscall.WaitStatus, error) {
	p := s.processes[i]
	log, err := os.OpenFile(filepath.Join(LogDir, p.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()

	exited := make(chan syscall.WaitStatus, 1)
	s.mu.Lock()
	pid, err := syscall.ForkExec(p.Path, append([]string{filepath.Base(p.Path)}, p.Args...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(slices.Clone(p.Env), "PATH="+searchPath, "HOME=/root"), // if names are equal, the first is used
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err == nil {
		s.waiting[pid] = exited
	}
	s.mu.Unlock()
	if err != nil {
		fmt.Fprintf(log, "start %s: %v\n", p.Path, err)
		return 0, fmt.Errorf("start %s: %w", p.Path, err)
	}
	s.update(func() { s.status[i].PID = pid })
	return <-exited, nil
}

func describe(status syscall.WaitStatus, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case status.Signaled():
		return "signal: " + status.Signal().String()
	default:
		return fmt.Sprintf("exit status %d", status.ExitStatus())
	}
}

// update calls change and writes the status to the machine's directory, where the host can read it.
func (s *supervisor) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	data, err := json.MarshalIndent(s.status, "", "  ")
	if err == nil {
		err = os.WriteFile(processesPath(ownDir)+".new", append(data, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(processesPath(ownDir)+".new", processesPath(ownDir))
	}
	if err != nil {
		slog.Error("write the status of the processes", "error", err)
	}
}
