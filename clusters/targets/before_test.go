package targets

import (
	"testing"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// TestSourcesAreTrustedOnlyInTheirNamespaces checks that write access to a namespace is not sufficient to act as a
// source that may not declare clusters there.
func TestSourcesAreTrustedOnlyInTheirNamespaces(t *testing.T) {
	desired := reconcile.Desired{Sources: []reconcile.SourceState{
		{Name: "https://g/shop,path=a", Namespaces: reconcile.Namespaces{"shop"}},
		{Name: "https://g/shop,path=b", Namespaces: reconcile.Namespaces{"shop", "shop-2"}},
		{Name: "https://g/bank", Namespaces: reconcile.Namespaces{"bank"}},
		{Name: "https://g/all"},
	}}
	for _, test := range []struct {
		source   string
		believed bool
	}{
		{"https://g/bank", false},
		{"https://g/bank,branch=next", false}, // identified by its location
		{"https://g/shop,path=a", false},
		{"https://g/shop,path=b", true},
		{"https://g/shop", true},
		{"https://g/all", true},
		{"https://g/of-another-run", true},
		{"", true},
	} {
		i := inventory.ByCluster{}
		own := i.At("shop-2", "a")
		own.Custom = &v1alpha1.EtcdCluster{}
		own.Custom.Status.DeclaredSource, own.Custom.Status.SourceRevision = test.source, "main@sha1:dead"
		for _, believed := range Trusted(i, desired) {
			if got := believed.Custom.Status.SourceRevision != ""; got != test.believed {
				t.Errorf("%q: trusted %t, want %t", test.source, got, test.believed)
			}
		}
		if own.Custom.Status.SourceRevision == "" {
			t.Errorf("%q: the listed objects have changed", test.source)
		}
	}
}
