package drill

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/child"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/excerpt"
	"quorate.dev/quorate/visible"
)

// The member of a trial, and the sockets in its directory that it listens on: nobody else on the
// machine can reach it. etcd wants a port in their names.
const (
	member       = "drill"
	clientSocket = "client:0"
	peerURL      = "unix://peer:0"
)

const (
	// pause between two questions whether it has started.
	pause = 50 * time.Millisecond
	// ending is how long whatever a program has started may hold on to what it writes to.
	ending = 2 * time.Second
	// maxSocket is how long the path of a socket may be, on every system.
	maxSocket = 103
)

// server is an etcd that runs.
type server struct {
	dir     string
	ended   chan struct{}
	process *exec.Cmd
	said    excerpt.Tail
}

// start starts etcd with a data directory. Its environment is empty: etcd takes settings from it.
func (p Program) start(dataDir string) (*server, error) {
	dir, err := socketDir()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, ended: make(chan struct{})}
	s.process = exec.CommandContext(context.Background(), p.path, "--name="+member, "--data-dir="+dataDir,
		"--listen-client-urls=unix://"+clientSocket, "--advertise-client-urls=unix://"+clientSocket,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster="+member+"="+peerURL, "--log-level=warn", "--log-outputs=stderr")
	s.process.Dir, s.process.Env, s.process.Stderr = dir, []string{}, &s.said
	s.process.WaitDelay = ending
	child.InGroup(s.process)
	if err := s.process.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		_ = s.process.Wait() // however it ended, it should not have
		close(s.ended)
	}()
	return s, nil
}

// socketDir makes the directory of the sockets.
func socketDir() (string, error) {
	dir, err := os.MkdirTemp("", "quorate-drill-")
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(dir)
	if err == nil && len(filepath.Join(path, clientSocket)) > maxSocket {
		err = fmt.Errorf("the path of a socket in %s would be too long: set TMPDIR to a shorter one", path)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return path, nil
}

// stop ends it. What it holds is thrown away, so that there is nothing to end in order.
func (s *server) stop() {
	_ = child.Kill(s.process)
	<-s.ended
	_ = os.RemoveAll(s.dir)
}

// cluster says how to reach it.
func (s *server) cluster() etcd.Cluster {
	return etcd.Cluster{
		Namespace: member, Name: member, Pods: []etcd.Pod{{Name: member}},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, clientSocket))
		},
	}
}

// ready waits until it answers a read that has a quorum behind it, which is itself, and returns the
// revision that it is at.
func (s *server) ready(ctx context.Context, clients *etcd.Clients) (revision int64, err error) {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		if m := clients.Observe(ctx, s.cluster()).Membership; m.Known && len(m.Members) == 1 && m.Members[0].Answers {
			return m.Members[0].Revision, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for etcd to answer: %w", context.Cause(ctx))
		case <-s.ended:
			return 0, fmt.Errorf("etcd ended before it answered: %s", s.last())
		case <-ticks.C:
		}
	}
}

// last is the last line that it said.
func (s *server) last() string {
	lines := strings.Split(strings.TrimSpace(s.said.String()), "\n")
	return visible.Line(lines[len(lines)-1])
}
