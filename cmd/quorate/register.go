package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"quorate.dev/quorate/internal/panics"
)

const (
	// timeToMeet is how long Kubernetes clusters wait for each other to be identified, and timeToAnswer is how long
	// each one may take. A slower Kubernetes cluster does not delay the others.
	timeToMeet, timeToAnswer = 2 * time.Second, 5 * time.Second
)

// registered is a Kubernetes cluster of a command, and how to reach it.
type registered struct {
	kubeTarget
	flags *liveFlags
	// known is closed once the Kubernetes cluster has been identified, or the attempt has failed.
	known chan struct{}
	// err is why the Kubernetes cluster cannot be reached; address and id identify it, as far as they are known. These
	// fields are guarded by the mutex of the register.
	err         error
	address, id string
}

// register determines whether two of several Kubernetes clusters are the same before anything is done there: different
// contexts or kubeconfigs may lead to the same API server, and two parts of a run would act on the same objects.
type register struct {
	mu  sync.Mutex
	all []*registered
}

// register identifies each Kubernetes cluster. It waits for at most timeToMeet; ready checks Kubernetes clusters that
// take longer. A single Kubernetes cluster need not be identified.
func (f *liveFlags) register(ctx context.Context, targets []kubeTarget) (*register, error) {
	m := &register{}
	for _, p := range targets {
		m.all = append(m.all, &registered{kubeTarget: p, flags: f.at(p), known: make(chan struct{})})
	}
	if !f.places.several() {
		close(m.all[0].known)
		return m, nil
	}
	in, cancel := context.WithTimeout(ctx, timeToMeet)
	defer cancel()
	for _, one := range m.all {
		go m.ask(ctx, f, one)
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
			return nil, usageError{fmt.Errorf("%s and %s are the same Kubernetes cluster and would both act on the "+
				"same objects: remove one of them", other.Name, one.Name)}
		}
	}
	return m, nil
}

// ask identifies one Kubernetes cluster.
func (m *register) ask(ctx context.Context, f *liveFlags, one *registered) {
	defer close(one.known)
	ctx, cancel := context.WithTimeout(ctx, timeToAnswer)
	defer cancel()
	if err := panics.Catch(func() error { return m.find(ctx, f, one) }); err != nil {
		m.note(func() { one.err = err })
	}
}

func (m *register) find(ctx context.Context, f *liveFlags, one *registered) (err error) {
	if one.flags.content, err = f.kubeconfigOf(ctx, one.kubeTarget); err != nil {
		return err
	}
	if one.flags.found, err = one.flags.find(); err != nil { // read once: the run acts on what was identified
		return err
	}
	client, err := one.flags.client()
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

func (m *register) note(what func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what()
}

// ready waits until the Kubernetes cluster has been identified, or until ctx is done, because a credential plugin may
// never end. It returns why nothing can be done there.
func (m *register) ready(ctx context.Context, one *registered) error {
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
func (m *register) preceding(one *registered) []*registered {
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

// kubeconfigOf returns the content of the kubeconfig in the Secret of a target, or nil if it has no Secret. The Secret
// is in the Kubernetes cluster that the flags, or the pod, specify.
func (f *liveFlags) kubeconfigOf(ctx context.Context, p kubeTarget) ([]byte, error) {
	if p.Secret == "" {
		return nil, nil
	}
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(p.Secret, "/")
	return client.KubeconfigIn(ctx, namespace, name)
}
