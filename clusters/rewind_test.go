package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile"
)

// A revision that does not follow what was applied before is as good as unread, with all that it declares. Others are not held up.
func TestRewound(t *testing.T) {
	follows := func(yes bool, err error) func(context.Context, string) (bool, error) {
		return func(_ context.Context, before string) (bool, error) {
			if before != "main@sha1:1" {
				t.Errorf("asked about %s", before)
			}
			return yes, err
		}
	}
	for _, test := range []struct {
		name string
		// of the revision main@sha1:2, which declares a, applied before, and b, which is new.
		follows func(context.Context, string) (bool, error)
		want    string
	}{
		{"follows", follows(true, nil), "a b c"},
		{"does not", follows(false, nil), "c unread: main@sha1:2 is refused: it does not descend from main@sha1:1, which was applied last"},
		{"cannot be told", follows(false, errors.New("the history is cut off")),
			"a (whether main@sha1:2 descends from main@sha1:1, which was applied last, is not known: the history is cut off) b c"},
		{"does not matter", nil, "a b c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory{}
			there(owned, "ns/a", "3.6.16", "c1", "")
			owned.at("ns", "a").custom.Status.DeclaredRevision = "main@sha1:1"
			desired := reconcile.Desired{}
			for _, what := range []string{"ns/a main@sha1:2", "ns/b main@sha1:2", "ns/c other@sha1:2"} {
				name, revision, _ := strings.Cut(what, " ")
				d := declare(name, "3.6.16")
				d.Revision, d.Follows = revision, test.follows
				desired.Clusters = append(desired.Clusters, d)
			}
			got := withoutRewound(t.Context(), desired, owned)
			var words []string
			for _, d := range got.Clusters {
				words = append(words, d.Cluster.Name)
				if len(d.Warnings) > 0 {
					words = append(words, fmt.Sprintf("(%s)", strings.Join(d.Warnings, " ")))
				}
			}
			if got.Unread != nil {
				words = append(words, "unread:", got.Unread.Error())
			}
			if said := strings.Join(words, " "); !strings.HasPrefix(said, test.want) || test.name != "does not" && said != test.want {
				t.Errorf("got %s", said)
			}
		})
	}
}
