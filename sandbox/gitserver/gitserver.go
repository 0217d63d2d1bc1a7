// Package gitserver serves git repositories with git's own smart HTTP server.
package gitserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
)

// Handler returns a handler that serves the bare repositories in a directory, regardless of who owns them.
func Handler(dir string) (http.Handler, error) {
	execPath, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("find git's HTTP server: %w", err)
	}
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(execPath)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}, nil
}

// Serve serves the bare repositories in a directory until ctx is done. It listens on a free port and passes the port to
// tell.
func Serve(ctx context.Context, dir string, tell func(port int)) error {
	handler, err := Handler(dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return fmt.Errorf("serve git: %w", err)
	}
	server := &http.Server{Handler: handler}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	tell(listener.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve git: %w", err)
	}
	return nil
}
