package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// slow is a source with two tenants. The second tenant's declarations become available only after the first tenant's
// cluster has been reported as converged.
type slow struct{ reported chan report.Cluster }

func (s slow) Fetch(ctx context.Context, early func(reconcile.Desired)) reconcile.Desired {
	early(tenants(nil, fmt.Errorf("read two: %w", reconcile.ErrReading)))
	select {
	case <-s.reported:
	case <-ctx.Done():
	}
	return tenants(nil, nil)
}

func (s slow) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	known(s.Fetch(ctx, known))
}

// tenants returns the declarations of ns/a and other/b. An error means that the tenant's source is unread.
func tenants(one, two error) reconcile.Desired {
	d := reconcile.Desired{Sources: []reconcile.SourceState{
		{Name: "one", Revision: "main@sha1:1", Namespaces: reconcile.Namespaces{"ns"}, Unread: one},
		{Name: "two", Revision: "main@sha1:2", Namespaces: reconcile.Namespaces{"other"}, Unread: two},
	}}
	if one == nil {
		d.Clusters = append(d.Clusters, declared("one", "ns/a"))
	}
	if two == nil {
		d.Clusters = append(d.Clusters, declared("two", "other/b"))
	}
	d.Summarize()
	return d
}

func declared(source, cluster string) reconcile.Declaration {
	d := reconcile.Declaration{Source: source, Cluster: v1alpha1.EtcdCluster{}}
	d.Cluster.Namespace, d.Cluster.Name, _ = strings.Cut(cluster, "/")
	return d
}

// TestSlowSourceDelaysOnlyItsClusters checks that a slow source does not delay clusters that it cannot affect, either
// in a single pass or in several. Its own clusters are processed as soon as it has been read.
func TestSlowSourceDelaysOnlyItsClusters(t *testing.T) {
	for name, run := range map[string]func(*reconcile.Reconciler) report.Report{
		"pass": func(r *reconcile.Reconciler) report.Report { return r.Pass(t.Context()) },
		"until converged": func(r *reconcile.Reconciler) report.Report {
			rep, converged := r.UntilConverged(t.Context())
			if !converged {
				t.Error("not converged")
			}
			return rep
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &live{worlds: map[string]*simulate.World{"a": worldOf("a"), "other/b": worldOf("b")}}
			reported, order := make(chan report.Cluster), []string{}
			var mutex sync.Mutex
			l.telling = func(c report.Cluster) {
				mutex.Lock()
				defer mutex.Unlock()
				if !slices.Contains(order, c.Key()) {
					order = append(order, c.Key())
				}
				if c.Key() == "ns/a" && c.Decision.Rule == decide.Converged {
					select {
					case reported <- c:
					default:
					}
				}
			}
			rep := run(reconciler(slow{reported}, l))
			if want := []string{"ns/a", "other/b"}; !slices.Equal(order, want) || len(rep.Clusters) != 2 || rep.Error != "" || rep.Revision != "main@sha1:1 main@sha1:2" {
				t.Errorf("reported %q, want %q; in the end %+v", order, want, rep)
			}
			for _, c := range rep.Clusters {
				if c.Outcome == nil || c.Decision.Rule != decide.Converged {
					t.Errorf("%s: %s, changed %+v", c.Key(), c.Decision, c.Outcome)
				}
			}
		})
	}
}

// TestUnfinishedReadIsReported checks that a run that ends while a source is being read reports the unfinished read.
func TestUnfinishedReadIsReported(t *testing.T) {
	l := &live{worlds: map[string]*simulate.World{"a": worldOf("a"), "other/b": worldOf("b")}}
	ctx, cancel := context.WithCancel(t.Context())
	l.telling = func(c report.Cluster) {
		if c.Decision.Rule == decide.Converged {
			cancel()
		}
	}
	rep := reconciler(slow{make(chan report.Cluster)}, l).Pass(ctx)
	if rep.Error != "read two: the source is still being read" || len(rep.Clusters) != 1 || rep.Clusters[0].Name != "a" {
		t.Errorf("got %+v", rep)
	}
}

// TestReady checks that a source that is still being read delays the clusters in its own namespaces, and in the
// namespaces of all sources that share a namespace with it, directly or through other sources.
func TestReady(t *testing.T) {
	for name, c := range map[string]struct {
		// namespaces contains the namespaces of sources a, b and c; none means all. Each source declares a cluster with
		// its own name in its first namespace.
		namespaces [3][]string
		reading    string
		want       string
	}{
		"apart":               {[3][]string{{"1"}, {"2"}, {"3"}}, "c", "1/a 2/b"},
		"all read":            {[3][]string{{"1"}, {"1"}, nil}, "", "1/a 1/b /c"},
		"one namespace":       {[3][]string{{"1"}, {"2"}, {"2", "3"}}, "c", "1/a"},
		"by way of another":   {[3][]string{{"1", "2"}, {"2", "3"}, {"3"}}, "c", ""},
		"in the other order":  {[3][]string{{"3"}, {"3", "2"}, {"2", "1"}}, "a", ""},
		"one that may in all": {[3][]string{{"1"}, {"2"}, nil}, "a", ""},
		"all wait for it":     {[3][]string{{"1"}, {"2"}, nil}, "c", ""},
		"all are read slowly": {[3][]string{{"1"}, {"2"}, {"3"}}, "abc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var d reconcile.Desired
			for i, source := range []string{"a", "b", "c"} {
				p := reconcile.SourceState{Name: source, Namespaces: c.namespaces[i]}
				if strings.Contains(c.reading, source) {
					p.Unread = fmt.Errorf("read %s: %w", source, reconcile.ErrReading)
				} else {
					d.Clusters = append(d.Clusters, declared(source, slices.Concat(c.namespaces[i], []string{""})[0]+"/"+source))
				}
				d.Sources = append(d.Sources, p)
			}
			if got := strings.Join(d.Ready(), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
