package etcdprocess

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/internal/boundedtext"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/procgroup"
)

// Member is the name of the started member. PeerURL and clientSocket are sockets in etcd's working directory, so that
// other users of the machine cannot reach etcd. etcd requires a port in the names of sockets.
const (
	Member       = "trial"
	PeerURL      = "unix://peer:0"
	clientSocket = "client:0"
)

const (
	// pause is the interval at which Ready checks whether etcd has started.
	pause = 50 * time.Millisecond
	// ending is the maximum time for which child processes may keep the output open.
	ending = 2 * time.Second
	// maxSocket is the maximum length of a socket path that every platform supports.
	maxSocket = 103
	// allLearners exceeds the number of learners in any cluster. Every learner in a log was accepted when the log was
	// written. With a lower limit, etcd would reject a learner when it reads the log, and then panic when
	// --force-new-cluster makes it remove that learner.
	allLearners = 100
)

// withMaxLearners is the first version that supports more than one learner and has an option for their maximum number.
var withMaxLearners = etcdversion.Must("3.6.0")

// Server is a running etcd.
type Server struct {
	dir     string
	ended   chan struct{}
	process *exec.Cmd
	said    boundedtext.Tail
}

// options returns the options with which etcd is started.
func (p Program) options(dataDir string) map[string]any {
	const clients = "unix://" + clientSocket
	options := map[string]any{
		"name": Member, "data-dir": dataDir,
		"listen-client-urls": clients, "advertise-client-urls": clients,
		"listen-peer-urls": PeerURL, "initial-advertise-peer-urls": PeerURL,
		"initial-cluster": Member + "=" + PeerURL, "log-level": "warn",
	}
	if p.Version.AtLeast(withMaxLearners) {
		options["max-learners"] = allLearners
	}
	return options
}

// ConfigFile returns the configuration file for an externally started etcd of the program's version, which runs as a
// single-member cluster. etcd must be started in the directory that is to contain its sockets.
func (p Program) ConfigFile(dataDir string) ([]byte, error) {
	file := p.options(dataDir)
	file["force-new-cluster"], file["log-outputs"] = true, []string{"stderr"}
	return yaml.Marshal(file)
}

// Attach returns a Server for an externally started etcd with its sockets in dir.
func Attach(dir string) *Server { return &Server{dir: dir} }

// Start starts etcd with a data directory and additional flags. The environment is empty because etcd reads settings
// from it.
func (p Program) Start(dataDir string, flags ...string) (*Server, error) {
	dir, err := socketDir()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, ended: make(chan struct{})}
	args := []string{"--log-outputs=stderr"}
	for option, value := range p.options(dataDir) {
		args = append(args, fmt.Sprintf("--%s=%v", option, value))
	}
	slices.Sort(args)
	s.process = exec.CommandContext(context.Background(), p.Path, slices.Concat(args, flags)...)
	s.process.Dir, s.process.Env, s.process.Stderr = dir, []string{}, &s.said
	s.process.WaitDelay = ending
	procgroup.InGroup(s.process)
	if err := s.process.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		_ = s.process.Wait() // any exit is unexpected
		close(s.ended)
	}()
	return s, nil
}

// socketDir creates a directory for etcd's sockets.
func socketDir() (string, error) {
	dir, err := os.MkdirTemp("", "quorate-etcd-")
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(dir)
	if err == nil && len(filepath.Join(path, clientSocket)) > maxSocket {
		err = fmt.Errorf("the path of a socket in %s would be too long: set TMPDIR to a shorter path", path)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return path, nil
}

// Stop kills etcd. An orderly shutdown is not necessary, because the data is discarded.
func (s *Server) Stop() {
	if s.process == nil {
		return // etcd is stopped externally
	}
	_ = procgroup.Kill(s.process)
	<-s.ended
	_ = os.RemoveAll(s.dir)
}

// Cluster returns the etcd.Cluster through which clients reach etcd.
func (s *Server) Cluster() etcd.Cluster {
	return etcd.Cluster{
		Namespace: Member, Name: Member, Pods: []etcd.Pod{{Name: Member}},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, clientSocket))
		},
	}
}

// Ready waits until etcd serves linearizable reads as the only member, and returns the revision.
func (s *Server) Ready(ctx context.Context, clients *etcd.Clients) (revision int64, err error) {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		if m := clients.Observe(ctx, s.Cluster()).Membership; m.Known && len(m.Members) == 1 && m.Members[0].Answers {
			return m.Members[0].Revision, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for etcd to respond: %w", context.Cause(ctx))
		case <-s.ended:
			return 0, fmt.Errorf("etcd exited before it responded: %s", s.LastWord())
		case <-ticks.C:
		}
	}
}

// LastWord returns the last line of etcd's output.
func (s *Server) LastWord() string {
	lines := strings.Split(strings.TrimSpace(s.said.String()), "\n")
	return printable.Line(lines[len(lines)-1])
}
