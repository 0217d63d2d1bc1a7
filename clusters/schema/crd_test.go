package schema

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// TestDefinitionIsValid checks that the definition passes the API server's own validation, including the estimated cost
// of the rules.
func TestDefinitionIsValid(t *testing.T) {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.YAML, &definition); err != nil {
		t.Fatal(err)
	}
	scheme.Default(&definition)
	var internal apiextensions.CustomResourceDefinition
	if err := scheme.Convert(&definition, &internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{"v1alpha1"}
	for _, err := range apiextensionsvalidation.ValidateCustomResourceDefinition(t.Context(), &internal) {
		t.Error(err)
	}
}
