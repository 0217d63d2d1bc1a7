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

// IdentifyWait is how long Identify waits for all Kubernetes clusters. A slower Kubernetes cluster does not
// delay the others.
const IdentifyWait = 2 * time.Second

// timeToAnswer is how long the identification of one Kubernetes cluster may take.
const timeToAnswer = 5 * time.Second

// Connection identifies a Kubernetes cluster. kube.Client implements it.
type Connection interface {
	// Address returns the address of the API server.
	Address() string
	// ClusterID returns an ID that no other Kubernetes cluster has.
	ClusterID(ctx context.Context) (string, error)
}

// registered is a Kubernetes cluster of a command.
type registered struct {
	fleetfile.Cluster
	// known is closed once the Kubernetes cluster has been identified, or the attempt has failed.
	known chan struct{}
	// err is why the Kubernetes cluster cannot be reached; address and id identify it, as far as they are known. These
	// fields are guarded by the mutex of the register.
	err         error
	address, id string
}

// Register determines whether two of several Kubernetes clusters are the same before anything is done there: different
// contexts or kubeconfigs may lead to the same API server, and two parts of a run would act on the same objects.
type Register struct {
	mu  sync.Mutex
	all []*registered
}

// Known returns the register of Kubernetes clusters that need not be identified, such as a single one.
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
// It waits for at most IdentifyWait; Ready checks those that take longer. It returns an error if two of them are the
// same.
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
		if err == nil { // otherwise its address identifies it; other errors show up soon
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

// Ready waits until the Kubernetes cluster with that index has been identified, or until ctx is done, because a
// credential plugin may never end. It returns why nothing can be done there.
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

// preceding returns the Kubernetes clusters that take precedence if one is the same. A kubeconfig written by others
// may claim to be any Kubernetes cluster, and must not block the real one. It yields to all that have a trusted
// kubeconfig, and to the untrusted ones listed before it.
func (m *Register) preceding(one *registered) []*registered {
	if !one.theirs() {
		return nil
	}
	list := ours(m.all)
	for _, other := range m.all[:slices.Index(m.all, one)] {
		if other.theirs() {
			list = append(list, other)
		}
	}
	return list
}

// theirs reports whether others, who may write the Secret, can influence how the Kubernetes cluster is reached.
func (m *registered) theirs() bool { return m.Secret != "" }

// ours returns the Kubernetes clusters whose connection settings are trusted.
func ours(all []*registered) []*registered {
	return slices.DeleteFunc(slices.Clone(all), (*registered).theirs)
}

// awaitRetry returns the error for a Kubernetes cluster that is the same as m.
func (m *registered) awaitRetry() error {
	return fmt.Errorf("it is the same Kubernetes cluster as %s; remove one of them", m.Name)
}

// sameAs returns the Kubernetes cluster among others that is the same, or nil if none is known to be.
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
