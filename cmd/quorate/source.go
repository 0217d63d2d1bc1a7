package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// sourceFlags say where declarations come from. They implement reconcile.Source.
type sourceFlags struct {
	location, branch, tag, commit, path string
	credentials                         string
	// namespace limits to one namespace; it is another flag's.
	namespace string
}

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.location, "source", "", "URL of a git repository, path of a local one, or a directory (required)")
	c.Flags().StringVar(&f.branch, "branch", "", "branch to read (default: the one that HEAD names)")
	c.Flags().StringVar(&f.tag, "tag", "", "tag to read, instead of a branch")
	c.Flags().StringVar(&f.commit, "commit", "", "commit to read, 40 hexadecimal digits, instead of a branch")
	c.Flags().StringVar(&f.credentials, "git-credentials", "", "directory with the files username and password, or bearerToken, and ca.crt: a mounted Secret")
	c.Flags().StringVar(&f.path, "path", "", "directory in the repository (default: its root)")
}

func (f *sourceFlags) check() error {
	if f.location == "" {
		return usageError{fmt.Errorf("--source is required: a git repository or a directory")}
	}
	return f.options().Check()
}

func (f *sourceFlags) options() gitsource.Options {
	return gitsource.Options{Location: f.location, Branch: f.branch, Tag: f.tag, Commit: f.commit, Path: f.path, Namespace: f.namespace}
}

func (f *sourceFlags) fetch(ctx context.Context) (gitsource.Desired, error) {
	options := f.options()
	var err error
	if options.Auth, err = readCredentials(f.credentials); err != nil {
		return gitsource.Desired{}, err
	}
	return gitsource.Fetch(ctx, options)
}

// Fetch implements reconcile.Source.
func (f *sourceFlags) Fetch(ctx context.Context) (reconcile.Desired, error) {
	fetched, err := f.fetch(ctx)
	if err != nil {
		return reconcile.Desired{}, err
	}
	desired := reconcile.Desired{Revision: fetched.Revision.String(), Problems: problemsOf(fetched)}
	for _, d := range fetched.Clusters {
		if f.namespace != "" && d.Cluster.Namespace != f.namespace {
			continue
		}
		desired.Clusters = append(desired.Clusters, reconcile.Declaration{Cluster: d.Cluster, Applied: d.Applied, Warnings: d.Warnings})
	}
	return desired, nil
}

func problemsOf(fetched gitsource.Desired) []report.Problem {
	var problems []report.Problem
	for _, p := range fetched.Problems {
		problems = append(problems, report.Problem{File: p.File, Line: p.Line, Cluster: p.Cluster, Message: p.Message})
	}
	return problems
}

// readCredentials reads a directory as a mounted Secret makes it. What is not there is empty.
func readCredentials(dir string) (gitsource.Auth, error) {
	if dir == "" {
		return gitsource.Auth{}, nil
	}
	contents := map[string]string{}
	for _, name := range []string{"username", "password", "bearerToken", "ca.crt"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gitsource.Auth{}, fmt.Errorf("read --git-credentials: %w", err)
		}
		contents[name] = strings.TrimSpace(string(content))
	}
	if contents["password"]+contents["bearerToken"]+contents["ca.crt"] == "" {
		return gitsource.Auth{}, usageError{fmt.Errorf("--git-credentials %s: want a directory with password, bearerToken or ca.crt in it", dir)}
	}
	auth := gitsource.Auth{Username: contents["username"], Password: contents["password"], BearerToken: contents["bearerToken"]}
	if contents["ca.crt"] != "" {
		auth.CABundle = []byte(contents["ca.crt"])
	}
	return auth, nil
}
