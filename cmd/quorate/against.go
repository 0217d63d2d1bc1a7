package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/offline"
	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile"
)

// kubernetesFlags lists the flags for the live side, which --against does not use.
var kubernetesFlags = []string{"kubeconfig", "context", "fleet", "allow-exec", "as", "as-group", "etcd-access",
	"etcd-timeout", "shard"}

// checkAgainst rejects flags and sources that cannot be combined with --against.
func (f *runFlags) checkAgainst() error {
	if f.against == "" {
		if f.config.given("against") {
			return usageError{fmt.Errorf("%s: expected a branch such as origin/main, a tag or a commit", offline.Flag)}
		}
		return nil
	}
	_, wrong := selectorOf(f.against).Normalized()
	switch {
	case wrong != nil:
		return usageError{fmt.Errorf("%s: %w", offline.Flag, wrong)}
	case f.source.live():
		return usageError{fmt.Errorf("--source %s: custom resources have no revisions for %s to compare; "+
			"specify a repository", ofCluster, offline.Flag)}
	case len(f.source.values) > 1:
		return usageError{fmt.Errorf("%s compares two revisions of one repository; plan one --source at a time",
			offline.Flag)}
	}
	for _, name := range kubernetesFlags {
		if f.config.given(name) {
			return usageError{fmt.Errorf("%s does not contact Kubernetes, so --%s has no effect; remove one of them",
				offline.Flag, name)}
		}
	}
	for _, o := range f.output.all() {
		if o.format == "state" {
			return usageError{fmt.Errorf("%s does not observe the live clusters, so --output state is not available; "+
				"use --output json", offline.Flag)}
		}
	}
	// Backup settings and destinations are set by flags of the runs, and are not known here.
	f.source.anyDestination = true
	return nil
}

// offline returns the live side for --against.
func (f *runFlags) offline(source *sourceFlags) (*offline.Live, error) {
	own := *source
	own.slots, own.confirmed = nil, nil
	set, err := own.set()
	if err != nil {
		return nil, err
	}
	for i := range set.Sources {
		set.Sources[i].Selector = selectorOf(f.against)
	}
	older := olderSource{f.against, set}
	return offline.New(older.read, f.live.maxDeletions), nil
}

// olderSource reads the declarations in the revision that --against names.
type olderSource struct {
	against string
	set     *sources.Set
}

// read reads the declarations in the older revision. If that revision does not contain the path, read returns a note
// and no declarations. If the newer revision does not contain the path, reading the newer revision fails.
func (a *olderSource) read(ctx context.Context) (older reconcile.Desired, note []string, err error) {
	older = a.set.Fetch(ctx, func(reconcile.Desired) {})
	err = older.Failure()
	var missing gitsource.MissingPathError
	if errors.As(err, &missing) && missing.Revision.Commit != "" {
		note = []string{printable.Line(fmt.Sprintf("%s does not contain the path %q: every cluster is treated as "+
			"new, including clusters that this revision declares under a different path",
			missing.Revision, missing.Path))}
		return reconcile.Desired{Revision: printable.Line(missing.Revision.String())}, note, nil
	}
	if err != nil {
		return older, nil, fmt.Errorf("%s %s: %w%s", offline.Flag, a.against, err, a.advice(err))
	}
	if older.Revision == revision.Directory {
		return older, nil, fmt.Errorf("%s %s: %s is not a repository, so it cannot be compared", offline.Flag,
			a.against, a.set.Sources[0].Location)
	}
	return older.ResolveOwners(func(string) reconcile.Previous { return reconcile.Previous{} }), nil, nil
}

// advice returns how to fetch a revision that the clone does not have.
func (a *olderSource) advice(why error) string {
	if errors.As(why, new(gitsource.MissingPathError)) {
		return "" // the revision exists
	}
	if !errors.Is(why, gitsource.ErrSource) || remote.IsAddress(a.set.Sources[0].Location) {
		return ""
	}
	server, branch, ok := strings.Cut(a.against, "/")
	if !ok || server == "refs" {
		server, branch = "origin", a.against
	}
	return fmt.Sprintf("; if this clone is shallow and does not contain the revision, run git fetch %s %s, or set "+
		"fetch-depth: 0 for actions/checkout", printable.Line(server), printable.Line(branch))
}

// selectorOf returns the selector for a revision name. It interprets names as git does, but does not evaluate
// expressions such as HEAD~1.
func selectorOf(name string) refs.Selector {
	switch {
	case name == "HEAD":
		return refs.Selector{}
	case strings.HasPrefix(name, "refs/"):
		return refs.Selector{Name: name}
	case revision.IsHash(strings.ToLower(name)):
		return refs.Selector{Commit: name}
	}
	return refs.Selector{Short: name}
}
