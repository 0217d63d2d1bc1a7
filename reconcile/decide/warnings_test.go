package decide

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCertificateWarnings: what no pass mends is told by each.
func TestCertificateWarnings(t *testing.T) {
	weak := Certificate{Secret: "s", Key: "k", CA: true, Weak: "P-224"}
	reissued := Certificate{Secret: "s", Key: "k", Weak: "P-224"}
	for what, c := range map[string]struct {
		state State
		want  []string
	}{
		"nothing":         {State{Certificates: []Certificate{lasts("k", true, 2000*day)}}, nil},
		"weak":            {State{Certificates: []Certificate{weak}}, []string{"k in Secret s, is weak (P-224)"}},
		"a leaf":          {State{Certificates: []Certificate{reissued}}, nil},
		"root":            {State{Name: "a", ClientIsRoot: true}, []string{"give the user a-client the rights that they need, and delete the Secret"}},
		"both":            {State{ClientIsRoot: true, Certificates: []Certificate{weak}}, []string{"is weak", "authentication is on"}},
		"whatever is due": {State{Now: noon.Add(time.Hour), Certificates: []Certificate{weak}}, []string{"is weak"}},
	} {
		if got := c.state.CertificateWarnings(); !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
