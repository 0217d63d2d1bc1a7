package clusters

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quorate.dev/quorate/clusters/kube"
)

// TestMissingRightsAreReportedWithAdvice checks that a missing right is reported once, with advice, and that other
// errors are not treated as missing rights.
func TestMissingRightsAreReportedWithAdvice(t *testing.T) {
	forbidden := func(words string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a-ca", errors.New(words))
	}
	cannot := forbidden(`User "ann" cannot list resource "secrets" in API group "" in the namespace "shop"`)
	notAs := forbidden(`User "ann" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`)
	nowhere := forbidden(`User "ann" cannot impersonate-on:serviceaccount:list resource "secrets" in API group "" in the namespace "shop"`)
	tenants := map[string]*kube.Client{"shop": {}}
	for _, test := range []struct {
		name      string
		err       error
		options   Options
		namespace string
		want      string
	}{
		{"as a tenant", cannot, Options{Tenants: tenants}, "shop", "create rolebinding quorate-tenant --namespace=shop --clusterrole=quorate --user="},
		{"as a tenant, read-only", cannot, Options{Tenants: tenants, Reading: true}, "shop", "create rolebinding quorate-tenant --namespace=shop --clusterrole=quorate --user="},
		{"impersonating the tenant is forbidden", notAs, Options{Tenants: tenants}, "shop", "use as=quorate:tenant:shop, and add this name to the ClusterRole quorate-tenants"},
		{"impersonating the tenant is forbidden, newer message", nowhere, Options{Tenants: tenants}, "shop", "use as=quorate:tenant:shop, and add this name to the ClusterRole quorate-tenants"},
		{"as the run's user", cannot, Options{Tenants: tenants}, "bank", "bind the ClusterRole quorate of deploy/base/rbac.yaml to this user in the namespace bank"},
		{"as the run's user, all namespaces", cannot, Options{}, "", "in all namespaces, or name the namespaces it may read"},
		{"read-only", cannot, Options{Reading: true}, "bank", "bind the ClusterRole quorate-plan of deploy/plan-rbac.yaml to this user in the namespace bank"},
		{"creating a claim is forbidden", fmt.Errorf("apply PersistentVolumeClaim data-a-0: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data-a-0",
			errors.New(`User "ann" cannot create resource "persistentvolumeclaims" in API group "" in the namespace "bank"`))), Options{}, "bank", "bind the ClusterRole quorate of deploy/base/rbac.yaml to this user in the namespace bank"},
		{"impersonating with --as is forbidden", notAs, Options{}, "bank", "omit --as"},
		{"one of several errors", errors.Join(errors.New("slow"), fmt.Errorf("apply: %w", cannot)), Options{}, "bank", "to this user in the namespace bank"},
		{"port-forwarding is forbidden", fmt.Errorf("%w: %w", kube.ErrForbidden, errors.New(`pods "a-0" is forbidden: User "ci" cannot create resource "pods/portforward"`)), Options{}, "bank", "to this user in the namespace bank"},
		{"quota exceeded", forbidden("exceeded quota: q, requested: pods=1"), Options{}, "shop", ""},
		{"namespace is being deleted", forbidden("unable to create new content in namespace shop because it is being terminated"), Options{}, "shop", ""},
		{"error is not from the API server", errors.New(`it is forbidden: User "ann" cannot`), Options{}, "shop", ""},
	} {
		l := New(nil, test.options)
		got := l.advised(test.namespace, test.err)
		if !errors.Is(got, test.err) || !strings.HasPrefix(got.Error(), test.err.Error()) {
			t.Errorf("%s: %v is missing from %v", test.name, test.err, got)
		}
		advice := strings.TrimPrefix(got.Error(), test.err.Error())
		if test.want == "" && advice != "" || !strings.Contains(advice, test.want) {
			t.Errorf("%s: %q, want %q", test.name, advice, test.want)
		}
		if again := l.advised(test.namespace, fmt.Errorf("observe: %w", got)); again.Error() != "observe: "+got.Error() {
			t.Errorf("%s: reported twice: %v", test.name, again)
		}
	}
	if err := New(nil, Options{}).advised("shop", nil); err != nil {
		t.Error(err)
	}
}
