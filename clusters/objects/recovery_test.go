package objects

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestRecoveryVersion checks that a cluster is recovered by the version that last ran and, if the members' image has a
// digest, with the declared digest of that version. Arbitrary text in an annotation is not accepted as a version.
func TestRecoveryVersion(t *testing.T) {
	c := &v1alpha1.EtcdCluster{}
	c.Spec.Version = "3.7.3"
	digests := map[string]v1alpha1.ImageDigest{"3.7.3": "sha256:aa", "3.6.16": "sha256:bb"}
	for _, test := range []struct {
		runs    string
		digests map[string]v1alpha1.ImageDigest
		want    string
		refused string
	}{
		{"", nil, "3.7.3", ""},
		{"3.6.16", nil, "3.6.16", ""},
		{"3.6.16", digests, "3.6.16", ""},
		{"3.6.15", digests, "", "must contain a digest for etcd 3.6.15"},
		{"3.6.15", map[string]v1alpha1.ImageDigest{"3.6.16": "sha256:bb"}, "3.6.15", ""},
		{"3.6.16 whatever", nil, "", "the version of etcd that last ran: "},
		{"$(TMPDIR)", nil, "", "the version of etcd that last ran: "},
	} {
		c.Spec.Image.Digests = test.digests
		got, err := RecoveryVersion(c, test.runs)
		if got != test.want || (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}
