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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/gitsource/credentials"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/steps"
)

// ofCluster is the value of --source for using the custom resources themselves as declarations.
const ofCluster = deploy.Cluster

// sourceFlags specify the sources.
type sourceFlags struct {
	// values contains the values of --source. If the sources are in a configuration file, values contains their
	// locations, own their settings, and where their positions in the file. settings contains the defaults for each
	// source.
	values []string
	own    [][]setting
	where  []string
	// named returns how the user has set a flag, for errors.
	named    func(flag string) string
	settings source
	// atOnce is the maximum number of sources that are read at the same time.
	atOnce int
	slots  *sources.Slots
	// shared, if set, is shared by a run over several Kubernetes clusters, so that each source is read only once.
	shared *sources.Shared
	// namespaces limits declarations to these namespaces, if any. It is the value of a different flag.
	namespaces []string
	// confirmed contains the confirmed revisions; see removals.go.
	confirmed revisions
	// given returns the settings on the command line, such as --branch.
	given func() []string
	// divide divides the memory among the sources that are read at the same time, once the command line is known.
	divide func()
	// shows is the name of the command if it does not apply anything.
	shows string
	// anyDestination allows all backup destinations and adoptions unless a setting limits them.
	anyDestination bool
}

func (f *sourceFlags) add(c *cobra.Command, help string) {
	c.Flags().StringArrayVar(&f.values, "source", nil, help)
	b := budgetWithin(memoryLimit())
	f.settings, f.atOnce, f.named = newSource(b.limits), b.atOnce, nameOf
	f.settings.add(c.Flags())
	addCount(c.Flags(), &f.atOnce, "sources-at-once",
		"number of sources to read at the same time; the default is lower if the container has little memory")
	c.Flags().Lookup("sources-at-once").DefValue = strconv.Itoa(budgetWithin(0).atOnce)
	flags := c.Flags()
	f.given = func() []string { return settingsIn(flags, c.Flags()) }
	f.divide = func() {
		if flags.Changed("sources-at-once") {
			b = budgetFor(memoryLimit(), f.atOnce)
			b.bound()
		}
		f.settings.Limits, f.settings.FetchBytes = b.forSources(len(f.values)).limits, b.fetch
	}
}

// addShowing adds the flags of a command that does not apply anything. Such a command shows a revision even if it does
// not descend from the applied revision.
func (f *sourceFlags) addShowing(c *cobra.Command, help string) {
	f.add(c, help)
	f.shows = c.Name()
	c.Flags().Lookup("allow-non-fast-forward").Hidden = true
}

// settingsIn lists the flags that are set, among the flags of addReading and the number of sources to read at the same
// time. It names them as in commandLine or in the configuration file.
func settingsIn(flags, commandLine *pflag.FlagSet) []string {
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	s := newSource(sources.DefaultLimits)
	s.addReading(settings)
	settings.Int("sources-at-once", 0, "")
	var given []string
	settings.VisitAll(func(flag *pflag.Flag) {
		if flags.Changed(flag.Name) {
			name := nameOf(flag.Name)
			if commandLine.Lookup(flag.Name) != nil {
				name = "--" + flag.Name
			}
			given = append(given, name)
		}
	})
	return given
}

const helpSource = "URL of a git repository (or user@host:path), path of a local repository, or a directory " +
	"(required); " +
	"repeatable, each with its own settings: LOCATION,path=apps,branch=main"

// live reports whether the custom resources are the source.
func (f *sourceFlags) live() bool { return slices.Contains(f.values, ofCluster) }

// sources returns the given sources with their settings. The error contains all syntax errors and all errors that
// check returns.
func (f *sourceFlags) sources(check func(source) error) ([]source, error) {
	var list []source
	var problems error
	for i, value := range f.values {
		settings := f.settings
		if len(f.namespaces) == 1 {
			settings.Namespace = cmp.Or(settings.Namespace, f.namespaces[0])
		}
		s, err := f.one(settings, i, value)
		for _, to := range []*policy.Allowed{&s.Policy.BackupDestinations, &s.Policy.Adoptions} {
			if f.anyDestination && !to.Limited {
				*to = policy.Allowed{Limited: true, Patterns: []string{policy.Everything}}
			}
		}
		if err == nil {
			err = check(s)
		}
		list, problems = append(list, s), errors.Join(problems, s.hide(err))
	}
	return list, problems
}

// one returns the source with index i.
func (f *sourceFlags) one(settings source, i int, value string) (source, error) {
	if f.own != nil {
		settings.Where = f.where[i]
		return settings.at(value, f.own[i])
	}
	return settings.with(value)
}

// parsed returns the given sources with their settings, which were checked before.
func (f *sourceFlags) parsed() ([]source, error) { return f.sources(func(source) error { return nil }) }

// checkHostsOfCredentials rejects passwords and tokens, in the environment or in directories, that would be sent to
// several hosts: the host of one source could then read the repositories of another. It compares the passwords and
// tokens themselves, because several paths may lead to one directory. It skips ssh, which does not send secrets.
// Directories that cannot be read are reported elsewhere.
func checkHostsOfCredentials(list []source) error {
	type use struct{ places, hosts []string }
	uses := map[string]use{}
	for _, s := range list {
		address, err := remote.ParseAddress(s.Location)
		if !remote.IsAddress(s.Location) || err != nil || address.Scheme == "ssh" {
			continue
		}
		place, found := "the environment", credentials.FromEnvironment(os.Getenv)
		if s.Credentials != "" {
			place = s.Credentials
			found, _ = credentials.Read(s.Credentials)
		}
		for _, secret := range []string{found.Password, found.BearerToken, string(found.GitHubApp.PrivateKey)} {
			if secret = strings.TrimSpace(secret); secret != "" {
				u := uses[secret]
				u.places, u.hosts = append(u.places, place), append(u.hosts, remote.Host(address))
				uses[secret] = u
			}
		}
	}
	var problems []string
	for _, u := range uses {
		slices.Sort(u.places)
		slices.Sort(u.hosts)
		if hosts := slices.Compact(u.hosts); len(hosts) > 1 {
			problems = append(problems, fmt.Sprintf("the credentials in %s would be sent to several hosts: %s; set "+
				"separate credentials for each source: credentials in the configuration file, or "+
				"git-credentials=DIRECTORY in --source", strings.Join(slices.Compact(u.places), " and "),
				strings.Join(hosts, ", ")))
		}
	}
	slices.Sort(problems)
	var errs []error
	for _, problem := range slices.Compact(problems) {
		errs = append(errs, errors.New(problem))
	}
	return usage(errs)
}

func (s source) check() error {
	if err := s.as.check(s); err != nil {
		return err
	}
	err := s.Check()
	if err != nil && s.Where != "" {
		err = fmt.Errorf("%s: %w", s.Where, err)
	}
	return err
}

// specified returns where the source is specified, for errors.
func (s source) specified() string { return cmp.Or(s.Where, "--source "+s.Location) }

// checkOne checks one source with its own settings.
func (f *sourceFlags) checkOne(s source) error {
	if f.shows != "" && s.AllowNonFastForward {
		return usageError{fmt.Errorf("%s: allow-non-fast-forward: %s", s.specified(), f.whyNoRewind())}
	}
	return s.check()
}

func (f *sourceFlags) whyNoRewind() string {
	return f.shows + " does not apply anything, and shows a revision even if it does not descend from the last " +
		"applied revision; remove the flag"
}

func (f *sourceFlags) check() error {
	if err := f.checkTogether(); err != nil || f.live() {
		return err
	}
	f.divide()
	list, err := f.checkEach(f.checkOne)
	return errors.Join(err, checkHostsOfCredentials(list))
}

// checkEach calls check for each source. If all succeed, it checks the sources against each other.
func (f *sourceFlags) checkEach(check func(source) error) ([]source, error) {
	list, problems := f.sources(check)
	if problems == nil {
		problems = errors.Join(sources.CheckDistinct(plain(list)), checkTenants(list))
	}
	return list, problems
}

// checkTogether rejects flags that do not apply to the sources.
func (f *sourceFlags) checkTogether() error {
	switch {
	case len(f.values) == 0:
		return usageError{errors.New("--source is required: a git repository or a directory")}
	case f.live() && len(f.values) > 1:
		return usageError{fmt.Errorf(
			"--source %s: the custom resources themselves are the declaration, so no other source is allowed",
			ofCluster)}
	case f.live() && len(f.confirmed) > 0:
		return usageError{fmt.Errorf(
			"--source %s: there are no removals to confirm, because the custom resources themselves are the "+
				"declaration; remove %s", ofCluster, report.FlagConfirm)}
	case f.live() && len(f.given()) > 0:
		return usageError{fmt.Errorf(
			"--source %s: no git repository is read, so these settings have no effect: %s; remove them "+
				"(--namespace and --as limit what the run may read and do)", ofCluster, strings.Join(f.given(), ", "))}
	case f.live():
		return nil
	case f.shows != "" && f.settings.AllowNonFastForward:
		return usageError{fmt.Errorf("--allow-non-fast-forward: %s", f.whyNoRewind())}
	}
	for _, value := range f.values {
		if f.own == nil && strings.HasPrefix(value, ofCluster+",") {
			return usageError{fmt.Errorf(
				"--source %s: the custom resources do not accept settings: "+
					"use only %s, or ./%s for a directory with that name", ofCluster, ofCluster, value)}
		}
	}
	return nil
}

// set returns the sources for reading. It does not repeat earlier checks.
func (f *sourceFlags) set() (*sources.Set, error) {
	list, err := f.parsed()
	if err != nil {
		return nil, err
	}
	slots := f.slots
	if slots == nil {
		slots = sources.NewSlots(f.atOnce)
	}
	return &sources.Set{Sources: plain(list), Slots: slots, Shared: f.shared,
		Namespaces: reconcile.Namespaces(f.namespaces), Confirmed: f.confirmed}, nil
}

// source returns the source for passes: the sources in the flags, or the custom resources.
func (f *sourceFlags) source(hook steps.Hook) (reconcile.Source, error) {
	if f.live() {
		return customResources{f.settings.Policy}, nil
	}
	set, err := f.set()
	if err != nil {
		return nil, err
	}
	set.Steps = hook
	return set, nil
}

// customResources is a source that uses the custom resources themselves as declarations, limited by a policy.
type customResources struct{ policy policy.Policy }

// Fetch implements reconcile.Source.
func (c customResources) Fetch(context.Context, func(reconcile.Desired)) reconcile.Desired {
	return reconcile.Desired{Live: true, Revision: "cluster", Refuses: c.policy.Problems}
}

// Follow implements reconcile.Source.
func (c customResources) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	known(c.Fetch(ctx, nil))
}
