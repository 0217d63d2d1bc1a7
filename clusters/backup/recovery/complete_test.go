package recovery

import (
	"errors"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// TestInitialClusterIsBounded checks that a small data directory cannot make the recovering process build a huge
// --initial-cluster, which repeats the name for each URL.
func TestInitialClusterIsBounded(t *testing.T) {
	for what, s := range map[string]snapshot.Survivor{
		"a long name": {Name: strings.Repeat("x", 20_000), PeerURLs: []string{"http://a"}},
		"many URLs":   {Name: "a", PeerURLs: make([]string, 5_000)},
	} {
		if err := new(Order).complete(s); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if o := new(Order); o.complete(snapshot.Survivor{Name: "a", PeerURLs: []string{"http://a", "http://b"}}) != nil || o.Into.InitialCluster != "a=http://a,a=http://b" {
		t.Errorf("got %q", o.Into.InitialCluster)
	}
}
