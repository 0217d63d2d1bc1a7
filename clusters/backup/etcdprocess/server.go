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

	"quorate.dev/quorate/clusters/child"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/etcdversion"
	"quorate.dev/quorate/excerpt"
	"quorate.dev/quorate/visible"
)

// Member is the name of the member that is started, and PeerURL the socket in its directory that it
// listens on: nobody else on the machine can reach it. etcd wants a port in the name.
const (
	Member       = "trial"
	PeerURL      = "unix://peer:0"
	clientSocket = "client:0"
)

const (
	// pause between two questions whether it has started.
	pause = 50 * time.Millisecond
	// ending is how long whatever a program has started may hold on to what it writes to.
	ending = 2 * time.Second
	// maxSocket is how long the path of a socket may be, on every system.
	maxSocket = 103
	// allLearners is more learners than any cluster has. What a log says of them was taken where it was written:
	// an etcd that refuses one panics when --force-new-cluster has it remove that.
	allLearners = 100
)

// withMaxLearners is the first version that can take more than one learner, and knows an option for it.
var withMaxLearners = etcdversion.Must("3.6.0")

// Server is an etcd that runs.
type Server struct {
	dir     string
	ended   chan struct{}
	process *exec.Cmd
	said    excerpt.Tail
}

// options are those that it is started with.
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

// ConfigFile is for an etcd of that version that somebody else starts as a cluster of one, in the directory of its
// sockets.
func (p Program) ConfigFile(dataDir string) ([]byte, error) {
	file := p.options(dataDir)
	file["force-new-cluster"], file["log-outputs"] = true, []string{"stderr"}
	return yaml.Marshal(file)
}

// Attach is an etcd that somebody else has started, or is about to, with its sockets in that directory.
func Attach(dir string) *Server { return &Server{dir: dir} }

// Start starts etcd with a data directory, and with these flags beside its own. Its environment is empty:
// etcd takes settings from it.
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
	dir, err := os.MkdirTemp("", "quorate-etcd-")
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

// Stop ends it. What it holds is thrown away, so that there is nothing to end in order.
func (s *Server) Stop() {
	if s.process == nil {
		return // whoever has started it ends it
	}
	_ = child.Kill(s.process)
	<-s.ended
	_ = os.RemoveAll(s.dir)
}

// Cluster says how to reach it.
func (s *Server) Cluster() etcd.Cluster {
	return etcd.Cluster{
		Namespace: Member, Name: Member, Pods: []etcd.Pod{{Name: Member}},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, clientSocket))
		},
	}
}

// Ready waits until it answers a read that has a quorum behind it, which is itself, and returns the
// revision that it is at.
func (s *Server) Ready(ctx context.Context, clients *etcd.Clients) (revision int64, err error) {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		if m := clients.Observe(ctx, s.Cluster()).Membership; m.Known && len(m.Members) == 1 && m.Members[0].Answers {
			return m.Members[0].Revision, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for etcd to answer: %w", context.Cause(ctx))
		case <-s.ended:
			return 0, fmt.Errorf("etcd ended before it answered: %s", s.LastWord())
		case <-ticks.C:
		}
	}
}

// LastWord is the last line that it said.
func (s *Server) LastWord() string {
	lines := strings.Split(strings.TrimSpace(s.said.String()), "\n")
	return visible.Line(lines[len(lines)-1])
}
