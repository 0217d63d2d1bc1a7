package objects

import (
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestMaxLearners checks that, in a cluster that was bootstrapped to allow two learners, all files set this limit, for
// every template in use and regardless of live files. The files of other clusters do not set it.
func TestMaxLearners(t *testing.T) {
	for name, c := range map[string]struct {
		token, version string
		want           bool
	}{
		"bootstrapped with 3.6":           {decide.FoundingToken("f00d", "3.6.16"), "3.6.16", true},
		"bootstrapped with 3.6, upgraded": {decide.FoundingToken("f00d", "3.6.16"), "3.7.3", true},
		"downgraded to 3.5":               {decide.FoundingToken("f00d", "3.6.16"), "3.5.35", false}, // 3.5 lacks this setting
		"bootstrapped with 3.5":           {decide.FoundingToken("f00d", "3.5.35"), "3.6.16", false},
		"token without a version":         {"f00d", "3.6.16", false},
	} {
		in := Input{Cluster: threeMembers(t, c.version), Record: record(3, decide.Sealed)}
		in.Record.Token = c.token
		in.Pods = []Template{{Version: c.version, SpecHash: "0123456789abcdef"}}
		in.Live = map[string]string{ConfigKey("a-0", in.Pods[0]): "data-dir: " + dataDir + "\n"}
		files := filesOf(t, in)
		for key, file := range files {
			if key == RecordKey {
				continue
			}
			if got := strings.Contains(file, "\nmax-learners: 2\n"); got != c.want {
				t.Errorf("%s: %s allows two learners: %t", name, key, got)
			}
		}
		if len(files) != 7 {
			t.Errorf("%s: %d files", name, len(files))
		}
	}
}
