package fleet

import (
	"context"
	"errors"
	"testing"

	"quorate.dev/quorate/clusters/fleetfile"
)

// fakeConnection has an address and an ID. The ID is empty if the API server rejects the credentials.
type fakeConnection struct{ address, id string }

func (c fakeConnection) Address() string { return c.address }

func (c fakeConnection) ClusterID(context.Context) (string, error) {
	if c.id == "" {
		return "", errors.New("Unauthorized")
	}
	return c.id, nil
}

// TestKubeconfigsFromSecretsExcludeNoOthers checks that an entry whose kubeconfig is in a Secret does not exclude a
// later entry, whatever address the kubeconfig contains and whatever ID its server claims.
func TestKubeconfigsFromSecretsExcludeNoOthers(t *testing.T) {
	genuine := fakeConnection{"https://genuine.example.com", "uid"}
	list := []fleetfile.Cluster{{Name: "impostor", Secret: "a/kubeconfig"}, {Name: "genuine", Secret: "b/kubeconfig"}}
	for name, test := range map[string]struct{ impostor, genuine fakeConnection }{
		"the same ID":                          {fakeConnection{"https://other.example.com", "uid"}, genuine},
		"the same address, invalid login":      {fakeConnection{genuine.address, ""}, genuine},
		"the same address, both without an ID": {fakeConnection{genuine.address, ""}, fakeConnection{genuine.address, ""}},
		"the same ID and address":              {genuine, genuine},
	} {
		r, err := Identify(t.Context(), list, func(_ context.Context, i int) (Connection, error) {
			return []Connection{test.impostor, test.genuine}[i], nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := r.Ready(t.Context(), 1); err != nil {
			t.Errorf("%s: nothing is done in the genuine Kubernetes cluster: %v", name, err)
		}
	}
}
