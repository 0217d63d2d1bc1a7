package reconcile_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// aging is a Live whose cluster has certificates.
type aging struct {
	*live
	left []time.Duration // remaining validity, out of 100 hours; the first is the CA's
}

func (l *aging) Observe(ctx context.Context, desired reconcile.Desired, wanted func(string) bool) (reconcile.Observed, error) {
	observed, err := l.live.Observe(ctx, desired, wanted)
	for i, c := range observed.Clusters {
		observed.Clusters[i] = agingCluster{c, l.left}
	}
	return observed, err
}

type agingCluster struct {
	reconcile.Cluster
	left []time.Duration
}

func (c agingCluster) State(ctx context.Context) (decide.State, error) {
	s, err := c.Cluster.State(ctx)
	for i, left := range c.left {
		s.Certificates = append(s.Certificates, decide.Certificate{
			Secret: "s", Key: string(rune('a' + i)), CA: i == 0, NotBefore: s.Now.Add(left - 100*time.Hour), NotAfter: s.Now.Add(left),
		})
	}
	return s, err
}

// TestExpiringCertificatesAreReported checks that the report lists certificates that expire soon, whatever the decision
// is, unless the pass has just renewed them.
func TestExpiringCertificatesAreReported(t *testing.T) {
	for _, test := range []struct {
		left []time.Duration
		want []string
	}{
		{[]time.Duration{90 * time.Hour, 40 * time.Hour}, nil},
		{[]time.Duration{90 * time.Hour, 33 * time.Hour, 30 * time.Hour}, []string{"c in Secret s expires at"}},
		{[]time.Duration{90 * time.Hour, 9 * time.Hour}, []string{"with less than a tenth of its lifetime left"}},
		{[]time.Duration{9 * time.Hour, 40 * time.Hour}, []string{"the CA (a in Secret s) expires at"}},
		{[]time.Duration{-time.Hour, -time.Hour}, []string{"b in Secret s expired at", "the CA (a in Secret s) expired at"}},
	} {
		l := &aging{live: oneCluster(), left: test.left}
		r := reconciler(&source{}, l)
		r.Pass(t.Context())
		l.live.worlds["a"].Delete("Service a-client")
		if first := r.Pass(t.Context()).Clusters[0]; first.Outcome == nil || len(first.Warnings) > 0 {
			t.Errorf("%v: the pass that writes the certificates warns of them: %q", test.left, first.Warnings)
		}
		r.Plan = true
		entry := r.Pass(t.Context()).Clusters[0]
		if len(entry.Warnings) != len(test.want) {
			t.Errorf("%v: %q", test.left, entry.Warnings)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(entry.Warnings[i], want) {
				t.Errorf("%v: %q, want %q", test.left, entry.Warnings[i], want)
			}
		}
		text, err := json.Marshal(entry)
		if err != nil || !strings.Contains(string(text), `"certificates":[{"secret":"s","key":"`) {
			t.Errorf("%s, %v", text, err)
		}
	}
}
