package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// statusFlags specify the content and format of the status command's output.
type statusFlags struct {
	live     liveFlags
	log      logFlags
	output   string
	order    string
	selector string
	verdicts []string
	watch    watchFlags
}

// statusOutputs lists the output formats of status.
var statusOutputs = []string{"text", "wide", "json", "yaml", "name"}

func newStatus(std streams) *cobra.Command { //nolint:funlen // most of it is help
	f := statusFlags{live: liveFlags{reading: true, kubeFlags: kubeFlags{places: &targetFlags{}}}}
	c := &cobra.Command{
		Use:   "status [[NAMESPACE/]CLUSTER]",
		Short: "Show the live state: a line per cluster, or the details of one cluster",
		Long: `Status observes the clusters that Quorate has applied, and queries etcd itself. It does not read git
or write anything.

It prints a line per cluster: the verdict and the rule of the next pass, and the age of the verdict;
the responding and total voters, and after a + the learners; the running versions; the largest
database and its quota; the age of the newest backup; the commit that declared it, with its age; and
why it is not up to date. Unknown values are shown as - or unknown. On a narrow terminal, the least
important columns are omitted.

With the name of a cluster, it shows its members with their pods and volumes, its conditions,
backups, certificates and latest events. -o wide lists the members of every cluster; json and
yaml show all data used for decisions: a list, or a single cluster if you name it; name prints
names that kubectl accepts.`,
		Example: `  quorate status
  quorate status prod/a
  quorate status --namespace prod --verdict Block,Wait --sort-by age
  quorate status -o wide
  quorate status --watch
  quorate status --verdict Block -o name | xargs -L 1 kubectl describe`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return status(c.Context(), std, f, strings.Join(args, ""))
		},
	}
	f.live.add(c)
	f.log.add(c)
	c.Flags().StringVarP(&f.output, "output", "o", "text", inWords(statusOutputs))
	c.Flags().StringVar(&f.order, "sort-by", "name", inWords(report.Orders)+
		": state lists clusters that need manual action first; size, the largest databases; age, the latest changes")
	c.Flags().StringVarP(&f.selector, "selector", "l", "",
		"show only clusters whose EtcdCluster has these labels, such as team=shop,tier!=test")
	c.Flags().StringSliceVar(&f.verdicts, "verdict", nil,
		"show only clusters with this verdict: "+inWords(verdictNames)+
			"; repeatable or separated by commas")
	f.watch.add(c)
	f.live.completes(c)
	for flag, choices := range map[string][]string{
		"output": statusOutputs, "sort-by": report.Orders, "verdict": verdictNames,
	} {
		completesChoice(c, flag, choices)
	}
	return c
}

// verdictNames lists the values of --verdict.
var verdictNames = []string{string(decide.Act), string(decide.Wait), string(decide.Block), string(decide.Done),
	report.VerdictUnknown}

// inWords joins choices with commas and "or".
func inWords(choices []string) string {
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

func status(ctx context.Context, std streams, f statusFlags, argument string) error {
	chooses, err := f.choice()
	if err != nil {
		return err
	}
	in := f.live.namespaces
	var of store.Cluster
	if argument != "" {
		if of, err = f.named(argument); err != nil {
			return err
		}
		in = []string{of.Namespace}
		if f.output == "text" {
			f.live.eventsOf = of.String()
		}
	}
	look := func(ctx context.Context) (report.Report, error) {
		rep, unseen := f.live.lookEverywhere(ctx, std, f.log, in)
		rep.Clusters = slices.DeleteFunc(rep.Clusters, func(c report.Cluster) bool {
			return !chooses(c) || argument != "" && c.Key() != of.String()
		})
		report.Sort(rep.Clusters, f.order)
		return rep, unseen
	}
	if f.watch.on {
		return f.watch.watch(ctx, std, look, pauseFor)
	}
	rep, unseen := look(ctx)
	if unseen != nil && len(rep.Clusters) == 0 {
		return unseen
	}
	if argument != "" {
		return f.one(std.out, rep, of, unseen)
	}
	return errors.Join(f.all(std.out, rep), unseen)
}

// named returns the cluster named by the argument, whose details are shown.
func (f *statusFlags) named(argument string) (store.Cluster, error) {
	if f.selector != "" || len(f.verdicts) > 0 {
		return store.Cluster{}, usageError{fmt.Errorf(
			"%s names one cluster, but --selector and --verdict select from all clusters: remove the name or these "+
				"flags", argument)}
	}
	return clusterNamed(argument, f.live.namespaces)
}

// choice checks the flags and returns a function that selects clusters.
func (f *statusFlags) choice() (func(report.Cluster) bool, error) {
	if err := errors.Join(oneOf("output", f.output, statusOutputs...),
		oneOf("sort-by", f.order, report.Orders...), f.watch.check(f.output)); err != nil {
		return nil, err
	}
	if f.output == "name" && f.live.places.several() {
		return nil, usageError{errors.New(
			"--output name: kubectl uses one Kubernetes cluster at a time; set one --context")}
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, usageError{fmt.Errorf("--selector %q: %w", f.selector, err)}
	}
	var verdicts []string
	for _, name := range f.verdicts {
		i := slices.IndexFunc(verdictNames, func(known string) bool { return strings.EqualFold(known, name) })
		if i < 0 {
			return nil, oneOf("verdict", name, verdictNames...)
		}
		verdicts = append(verdicts, verdictNames[i])
	}
	return func(c report.Cluster) bool {
		var has labels.Set
		if c.Custom != nil {
			has = c.Custom.Labels
		}
		return selector.Matches(has) && (len(verdicts) == 0 || slices.Contains(verdicts, c.VerdictName()))
	}, nil
}

// all writes a report on many clusters.
func (f *statusFlags) all(w io.Writer, rep report.Report) error {
	switch f.output {
	case "json":
		return report.States(w, rep)
	case "yaml":
		return report.StatesYAML(w, rep)
	case "name":
		return report.Names(w, rep)
	case "wide":
		return report.Members(w, rep, style(w))
	}
	return report.Table(w, rep, styleUpTo(w, widestTable))
}

// widestTable is the maximum width of a table. It is larger than that of text, because tables are not read line by
// line.
const widestTable = 400

// one writes a report on one cluster. It returns an error if the cluster could not be observed.
func (f *statusFlags) one(w io.Writer, rep report.Report, of store.Cluster, unseen error) error {
	if len(rep.Clusters) == 0 {
		return fmt.Errorf("status of %s: Quorate has not applied a cluster with that name; to list all clusters, run "+
			"quorate status", of)
	}
	var err error
	switch c := rep.Clusters[0]; {
	case f.output == "text":
		for _, c := range rep.Clusters {
			err = errors.Join(err, report.Detail(w, c, style(w)))
		}
	case f.output == "json" && !f.live.places.several():
		err = report.State(w, c)
	case f.output == "yaml" && !f.live.places.several():
		err = report.StateYAML(w, c)
	default:
		err = f.all(w, rep)
	}
	failed := func(c report.Cluster) bool { return c.Error != "" }
	if err == nil && slices.ContainsFunc(rep.Clusters, failed) {
		err = exit(exitError)
	}
	return errors.Join(err, unseen)
}

// lookEverywhere calls look for all given Kubernetes clusters in parallel.
func (f *liveFlags) lookEverywhere(
	ctx context.Context, std streams, logging logFlags, in []string,
) (report.Report, error) {
	targets, err := f.places.places()
	if err != nil {
		return report.Report{}, err
	}
	if _, err := f.check(); err != nil {
		return report.Report{}, err
	}
	reg, err := f.register(ctx, targets)
	if err != nil {
		return report.Report{}, err
	}
	parts, unseen := make([]report.Part, len(targets)), make([]error, len(targets))
	var all sync.WaitGroup
	for i, p := range targets {
		all.Go(func() {
			parts[i].Kubernetes = p.Name
			if unseen[i] = reg.Ready(ctx, i); unseen[i] == nil {
				parts[i].Report, unseen[i] = reg.flags[i].look(ctx, std, logging, in)
			}
			if unseen[i] != nil && f.places.several() {
				unseen[i] = fmt.Errorf("%s: %w", p.Name, unseen[i])
			}
		})
	}
	all.Wait()
	return report.Join(parts), errors.Join(unseen...)
}

// look observes the clusters in the given namespaces, or in all namespaces if none are given, without writing anything.
// The error describes what could not be listed; the report contains everything else.
func (f *liveFlags) look(
	ctx context.Context, std streams, logging logFlags, in []string,
) (report.Report, error) {
	log, err := logging.logger(std)
	if err != nil {
		return report.Report{}, err
	}
	ctx = withLog(ctx, log)
	live, err := f.live(scope{namespaces: in})
	if err != nil {
		return report.Report{}, err
	}
	defer live.Close(ctx) // live does not hold a lease
	rep, err := reconcile.ObserveAll(ctx, live)
	for i := range rep.Clusters {
		if c := &rep.Clusters[i]; c.Key() == f.eventsOf {
			f.readEvents(ctx, live, c)
		}
	}
	return rep, err
}

// timeForEvents is the timeout for reading events, which are only supplementary.
const timeForEvents = 5 * time.Second

// readEvents adds the events of a cluster, or the reason why they could not be read.
func (f *liveFlags) readEvents(ctx context.Context, live *clusters.Live, c *report.Cluster) {
	ctx, cancel := context.WithTimeout(ctx, timeForEvents)
	defer cancel()
	var err error
	if c.Events, err = live.Events(ctx, *c); err != nil {
		c.NoEvents = printable.Line(err.Error())
	}
}
