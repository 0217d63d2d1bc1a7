package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/credentials"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// ofCluster as the only source means that the custom resources themselves are the declaration.
const ofCluster = "cluster"

// sourceFlags say where declarations come from. They implement reconcile.Source.
type sourceFlags struct {
	// values of --source, and the settings that hold for each that does not say otherwise.
	values   []string
	settings source
	// readers remember what each of them has declared, for a run that reads them again.
	readers []gitsource.Reader
	// atOnce is how many of them are read at once, in turns.
	atOnce int
	turns  turns
	// namespace limits to one namespace; it is another flag's.
	namespace string
	// confirmed are revisions; see removals.go.
	confirmed revisions
}

func (f *sourceFlags) add(c *cobra.Command, help string) {
	c.Flags().StringArrayVar(&f.values, "source", nil, help)
	b := budgetWithin(memoryLimit())
	f.settings, f.atOnce = newSource(b.limits), b.atOnce
	f.settings.add(c.Flags())
	addCount(c.Flags(), &f.atOnce, "sources-at-once", "sources that are read at once; fewer by default where the container has little memory")
	c.Flags().Lookup("sources-at-once").DefValue = strconv.Itoa(budgetWithin(0).atOnce)
}

const helpSource = "URL of a git repository or user@host:path, path of a local one, or a directory (required); repeatable, each with settings of its own: LOCATION,path=apps,branch=main"

// live reports whether the custom resources are the source.
func (f *sourceFlags) live() bool { return slices.Contains(f.values, ofCluster) }

// sources are those that are given, with their settings. The error is all that is wrong with how they are written, and what check says of each.
func (f *sourceFlags) sources(check func(source) error) ([]source, error) {
	var sources []source
	var problems error
	for _, value := range f.values {
		settings := f.settings
		settings.namespace = cmp.Or(settings.namespace, f.namespace)
		s, err := settings.with(value)
		if err == nil {
			err = check(s)
		}
		sources, problems = append(sources, s), errors.Join(problems, err)
	}
	return sources, problems
}

// checkEnvironment refuses credentials of the environment that would be shown to several hosts.
func checkEnvironment(sources []source) error {
	if !credentials.FromEnvironment(os.Getenv).Given() {
		return nil
	}
	var hosts []string
	for _, s := range sources {
		address, err := remote.ParseAddress(s.location)
		if s.credentials == "" && remote.IsAddress(s.location) && err == nil && !slices.Contains(hosts, address.Host) {
			hosts = append(hosts, address.Host)
		}
	}
	if len(hosts) < 2 {
		return nil
	}
	return usageError{fmt.Errorf("the credentials of the environment would be shown to several hosts: %s; give each source its own, git-credentials=DIRECTORY", strings.Join(hosts, ", "))}
}

func (s source) check() error {
	options, err := s.options()
	if err != nil {
		return err
	}
	if err := s.checkVerify(); err != nil {
		return err
	}
	return options.Check()
}

func (f *sourceFlags) check() error {
	switch {
	case len(f.values) == 0:
		return usageError{errors.New("--source is required: a git repository or a directory")}
	case f.live() && len(f.values) > 1:
		return usageError{fmt.Errorf("--source %s: the custom resources themselves are the declaration; there can be no other source", ofCluster)}
	case f.live() && len(f.confirmed) > 0:
		return usageError{fmt.Errorf("--source %s: nothing is taken for removed while the custom resources themselves are the declaration; leave %s out", ofCluster, report.FlagConfirm)}
	case f.live():
		return nil
	}
	sources, problems := f.sources(source.check)
	return errors.Join(problems, checkEnvironment(sources))
}

// fetched is what became of one source.
type fetched struct {
	source  source
	desired gitsource.Desired
	err     error
}

// fetch reads all sources, so many at once as there are turns. What has been checked before is not checked again: each reads its own credentials, and fails alone.
func (f *sourceFlags) fetch(ctx context.Context) ([]fetched, error) {
	sources, err := f.sources(func(source) error { return nil })
	if err != nil {
		return nil, err
	}
	all := make([]fetched, len(sources))
	if f.readers == nil {
		f.readers, f.turns = make([]gitsource.Reader, len(sources)), make(turns, f.atOnce)
	}
	var group errgroup.Group
	for i, s := range sources {
		s.turns = f.turns
		group.Go(func() error {
			all[i].source = s
			all[i].desired, all[i].err = s.fetch(ctx, &f.readers[i])
			return nil
		})
	}
	return all, group.Wait()
}

// Fetch implements reconcile.Source.
func (f *sourceFlags) Fetch(ctx context.Context) reconcile.Desired {
	if f.live() {
		return reconcile.Desired{Live: true, Revision: "cluster"}
	}
	desired := f.declared(ctx)
	desired.Clusters = slices.DeleteFunc(desired.Clusters, func(d reconcile.Declaration) bool {
		return f.namespace != "" && d.Cluster.Namespace != f.namespace
	})
	return desired
}

// declared is what the sources declare, in whatever namespace.
func (f *sourceFlags) declared(ctx context.Context) reconcile.Desired {
	all, err := f.fetch(ctx)
	if err != nil {
		return reconcile.Desired{Unread: err}
	}
	desired := join(all)
	desired.Namespaces, desired.Confirmed = namespacesOf(all), f.confirmed
	return desired
}

// namespacesOf lists the namespaces that the sources may declare clusters in; none if one of them may in all.
func namespacesOf(all []fetched) []string {
	var namespaces []string
	for _, s := range all {
		if len(s.source.allowNamespaces) == 0 {
			return nil
		}
		namespaces = append(namespaces, s.source.allowNamespaces...)
	}
	return namespaces
}

// join puts together what several sources declare. A cluster that two of them declare is in the problems: which of them is meant cannot be known.
func join(all []fetched) reconcile.Desired {
	desired := readOf(all)
	declared := map[string][]int{}
	for i, s := range all {
		for cluster := range clustersIn(s.desired) {
			declared[cluster] = append(declared[cluster], i)
		}
	}
	for i, s := range all {
		label := ""
		if len(all) > 1 {
			label = s.source.String()
		}
		desired.Problems = append(desired.Problems, problemsOf(s.desired, label)...)
		follows := s.source.descentOf(s.desired.Revision)
		for _, d := range s.desired.Clusters {
			name := d.Cluster.Namespace + "/" + d.Cluster.Name
			if others := others(declared[name], i); len(others) > 0 {
				desired.Problems = append(desired.Problems, report.Problem{
					Source: label, File: d.File, Line: d.Line, Cluster: name,
					Message: fmt.Sprintf("the cluster %s is declared by another source too: %s", name, all[others[0]].source),
				})
				continue
			}
			desired.Clusters = append(desired.Clusters, reconcile.Declaration{
				Cluster: d.Cluster, Applied: d.Applied, Source: s.source.identity(), Revision: s.desired.Revision.String(), Follows: follows,
				Warnings: d.Warnings,
			})
		}
	}
	return desired
}

// readOf says which sources were read, at which revisions and signed by whom, and which were not.
func readOf(all []fetched) reconcile.Desired {
	var desired reconcile.Desired
	var revisions, signers []string
	for _, s := range all {
		if s.err != nil {
			desired.Unread = errors.Join(desired.Unread, s.err)
			continue
		}
		revision, signer := s.desired.Revision.String(), s.desired.Revision.Signer
		desired.Sources = append(desired.Sources, reconcile.Place{Name: s.source.identity(), Revision: revision})
		if !slices.Contains(revisions, revision) {
			revisions = append(revisions, revision)
		}
		if signer != "" && !slices.Contains(signers, signer) {
			signers = append(signers, signer)
		}
		if len(s.desired.Clusters)+len(s.desired.Problems) == 0 {
			desired.Warnings = append(desired.Warnings, s.source.String()+" declares no cluster")
		}
	}
	desired.Revision, desired.Signer = strings.Join(revisions, " "), strings.Join(signers, ", ")
	return desired
}

// clustersIn names the clusters that a source declares, well or badly.
func clustersIn(desired gitsource.Desired) map[string]bool {
	names := map[string]bool{}
	for _, d := range desired.Clusters {
		names[d.Cluster.Namespace+"/"+d.Cluster.Name] = true
	}
	for _, p := range desired.Problems {
		if p.Cluster != "" {
			names[p.Cluster] = true
		}
	}
	return names
}

func others(indices []int, but int) []int {
	return slices.DeleteFunc(slices.Clone(indices), func(i int) bool { return i == but })
}

func problemsOf(desired gitsource.Desired, source string) []report.Problem {
	var problems []report.Problem
	for _, p := range desired.Problems {
		problems = append(problems, report.Problem{Source: source, File: p.File, Line: p.Line, Cluster: p.Cluster, Message: p.Message})
	}
	return problems
}
