// Package fleet runs a command for several Kubernetes clusters.
package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"quorate.dev/quorate/clusters/fleetfile"
	"quorate.dev/quorate/internal/panics"
)

// IdentifyWait is the maximum time for which Identify waits. Kubernetes clusters that take longer do not delay the
// others.
const IdentifyWait = 2 * time.Second

// timeToAnswer is the maximum time for identifying one Kubernetes cluster.
const timeToAnswer = 5 * time.Second

// Connection identifies a Kubernetes cluster. kube.Client implements it.
type Connection interface {
	// Address returns the address of the API server.
	Address() string
	// ClusterID returns the unique ID of the Kubernetes cluster.
	ClusterID(ctx context.Context) (string, error)
}

// registered is one of the Kubernetes clusters of a command.
type registered struct {
	fleetfile.Cluster
	// known is closed once the Kubernetes cluster has been identified, or the attempt has failed.
	known chan struct{}
	// err is the reason why the Kubernetes cluster cannot be used. address and id identify the cluster, and are empty
	// while unknown. The register's mutex guards these fields.
	err         error
	address, id string
}

// Register detects whether two of a command's Kubernetes clusters are the same before anything is done there. Different
// contexts or kubeconfigs may refer to the same API server, and two parts of a run would then act on the same objects.
type Register struct {
	mu  sync.Mutex
	all []*registered
}

// Known returns a register of Kubernetes clusters that do not have to be identified, for example because there is only
// one.
func Known(clusters []fleetfile.Cluster) *Register {
	r := newRegister(clusters)
	for _, one := range r.all {
		close(one.known)
	}
	return r
}

func newRegister(clusters []fleetfile.Cluster) *Register {
	r := &Register{}
	for _, c := range clusters {
		r.all = append(r.all, &registered{Cluster: c, known: make(chan struct{})})
	}
	return r
}

// Identify identifies each Kubernetes cluster, in parallel, through the connection that connect returns for its index.
// It waits for at most IdentifyWait. Clusters that take longer are checked by Ready. Identify returns an error if two
// clusters are the same.
func Identify(
	ctx context.Context, clusters []fleetfile.Cluster, connect func(ctx context.Context, i int) (Connection, error),
) (*Register, error) {
	m := newRegister(clusters)
	in, cancel := context.WithTimeout(ctx, IdentifyWait)
	defer cancel()
	for i, one := range m.all {
		go m.ask(ctx, one, func(ctx context.Context) (Connection, error) { return connect(ctx, i) })
	}
	for _, one := range m.all {
		select {
		case <-one.known:
		case <-in.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, one := range m.all {
		if other := one.sameAs(ours(m.all[:i])); other != nil && !one.theirs() {
			return nil, fmt.Errorf("%s and %s are the same Kubernetes cluster and would both act on the "+
				"same objects: remove one of them", other.Name, one.Name)
		}
	}
	return m, nil
}

// ask identifies one Kubernetes cluster.
func (m *Register) ask(
	ctx context.Context, one *registered, connect func(context.Context) (Connection, error),
) {
	defer close(one.known)
	ctx, cancel := context.WithTimeout(ctx, timeToAnswer)
	defer cancel()
	if err := panics.Catch(func() error { return m.find(ctx, one, connect) }); err != nil {
		m.note(func() { one.err = err })
	}
}

func (m *Register) find(
	ctx context.Context, one *registered, connect func(context.Context) (Connection, error),
) error {
	client, err := connect(ctx)
	if err != nil {
		return err
	}
	m.note(func() { one.address = client.Address() })
	id, err := client.ClusterID(ctx)
	m.note(func() {
		if err == nil { // if it failed, the address identifies the cluster, and other requests will report the error
			one.id = id
		}
		if other := one.sameAs(ours(m.all)); other != nil && !one.theirs() {
			one.err = other.awaitRetry()
		}
	})
	return nil
}

func (m *Register) note(what func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what()
}

// Ready waits until Kubernetes cluster i has been identified, or until ctx is done, because a credential plugin may
// hang. It returns an error if the cluster cannot be used.
func (m *Register) Ready(ctx context.Context, i int) error {
	one := m.all[i]
	select {
	case <-one.known:
	case <-ctx.Done():
		return fmt.Errorf("identify the Kubernetes cluster: %w", context.Cause(ctx))
	}
	first := m.preceding(one)
	waiting, cancel := context.WithTimeout(ctx, timeToAnswer)
	defer cancel()
	for _, other := range first {
		select {
		case <-other.known:
		case <-waiting.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := one.sameAs(first); other != nil && one.err == nil {
		return other.awaitRetry()
	}
	return one.err
}

// preceding returns the Kubernetes clusters that exclude one if they are the same cluster. An untrusted kubeconfig may
// claim to be any Kubernetes cluster, so it must not exclude the real cluster. It is excluded only by trusted
// kubeconfigs. If two untrusted kubeconfigs refer to the same Kubernetes cluster, the leases prevent simultaneous
// actions.
func (m *Register) preceding(one *registered) []*registered {
	if !one.theirs() {
		return nil
	}
	return ours(m.all)
}

// theirs reports whether the kubeconfig is untrusted, because it is read from a Secret that other users may be able to
// write.
func (m *registered) theirs() bool { return m.Secret != "" }

// ours returns the Kubernetes clusters whose connection settings are trusted.
func ours(all []*registered) []*registered {
	return slices.DeleteFunc(slices.Clone(all), (*registered).theirs)
}

// awaitRetry returns the error for an entry that is the same Kubernetes cluster as m.
func (m *registered) awaitRetry() error {
	return fmt.Errorf("it is the same Kubernetes cluster as %s; remove one of them", m.Name)
}

// sameAs returns the first of the others that is known to be the same Kubernetes cluster as m, or nil.
func (m *registered) sameAs(others []*registered) *registered {
	for _, other := range others {
		switch {
		case other == m:
		case m.id != "" && other.id != "":
			if m.id == other.id {
				return other
			}
		case m.address != "" && m.address == other.address:
			return other
		}
	}
	return nil
}
