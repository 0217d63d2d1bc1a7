package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestResolveOwners checks that a cluster belongs to the source that declared it before, as long as that source may
// still declare it.
func TestResolveOwners(t *testing.T) {
	for _, test := range []struct {
		name string
		// says describes how sources a and b declare the cluster ns/x. "a" means that source a declares it, "a!" that
		// its declaration is invalid, "a?" that source a has a problem that may concern the cluster, and "a-" that
		// source a cannot be read.
		says, before, want string
	}{
		{"one declares it", "a", "", "a"},
		{"one has it wrong", "a!", "", "a! is about it"},
		{"the one that declared it before", "a", "a", "a"},
		{"moved from one to the other", "b", "a", "b"},
		{"moved while it is held", "b", "a held", "b: belongs to a different source, which has not released it: A"},
		{"declared again while it is held", "a", "a held", "a"},
		{"moved from another run", "b", "c", "b"},
		{"both, and none before", "a b", "", "contested; a: is also declared by a different source: B; b: is also declared by a different source: A"},
		{"both, and another run before", "a b", "c", "contested; a: is also declared by a different source: B; b: is also declared by a different source: A"},
		{"both, one of them wrong", "a b!", "", "contested; b!; a: is also declared by a different source: B"},
		{"both wrong", "a! b!", "", "contested; a!; b!"},
		{"both, and one before", "a b", "a", "a; b: belongs to a different source, which has not released it: A"},
		{"one before, and the other wrong", "a b!", "a", "a; b!"},
		{"one before, and wrong", "a! b", "a", "a! is about it; b: belongs to a different source, which has not released it: A"},
		{"one before that cannot be read", "a- b", "a", "b: belongs to a different source, which has not released it: A"},
		{"one before that cannot be read, and the other wrong", "a- b!", "a", "b!"},
		{"one before that is not understood", "a? b", "a", "a?; b: belongs to a different source, which has not released it: A"},
		{"the other is not understood", "a b?", "a", "a; b?"},
		{"the other is not understood, and it is new", "a b?", "", "a; b?"},
		{"the other cannot be read", "a b-", "", "a"},
		{"one that is given twice", "a a", "a", "contested; a: is also declared by a different source: ; a: is also declared by a different source: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			desired := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}}
			for word := range strings.FieldsSeq(test.says) {
				source, label := word[:1], strings.ToUpper(word[:1])
				switch strings.TrimPrefix(word, source) {
				case "":
					d := reconcile.Declaration{Source: source, Where: report.Problem{Source: label}}
					d.Cluster.Namespace, d.Cluster.Name = "ns", "x"
					desired.Clusters = append(desired.Clusters, d)
				case "!":
					desired.Problems = append(desired.Problems, report.Problem{Place: source, Source: label, Cluster: "ns/x", Message: word})
				case "?":
					desired.Problems = append(desired.Problems, report.Problem{Place: source, Source: label, Message: word})
				case "-":
					desired.Sources[strings.Index("ab", source)].Unread = errors.New("no answer")
				}
			}
			if got := converged(desired.ResolveOwners(func(string) reconcile.Previous {
				return reconcile.Previous{Source: strings.TrimSuffix(test.before, " held"), Held: strings.HasSuffix(test.before, " held")}
			})); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

// converged returns text that lists which source declares which cluster, and the problems.
func converged(d reconcile.Desired) string {
	var words []string
	for range d.Contested {
		words = append(words, "contested")
	}
	for _, c := range d.Clusters {
		words = append(words, c.Source)
	}
	for _, p := range d.Problems {
		_, message, lost := strings.Cut(p.Message, "cluster ns/x ")
		switch {
		case lost && !p.Foreign:
			words = append(words, "it holds up the cluster: "+p.Message)
		case lost:
			words = append(words, fmt.Sprintf("%s: %s: %s", p.Place, message, p.Beside))
		case p.Cluster != "" && !p.Foreign:
			words = append(words, p.Message+" is about it")
		default:
			words = append(words, p.Message)
		}
	}
	return strings.Join(words, "; ")
}
