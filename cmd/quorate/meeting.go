package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"quorate.dev/quorate/reconcile/panics"
)

const (
	// timeToMeet is how long Kubernetes clusters wait for each other to say which they are, and timeToAnswer how long
	// one may take. One that takes longer holds up no other, and waits by itself.
	timeToMeet, timeToAnswer = 2 * time.Second, 5 * time.Second
)

// met is one of the Kubernetes clusters of a command, and how it is reached.
type met struct {
	place
	flags *liveFlags
	// known is closed once it is known which it is, or that it cannot be.
	known chan struct{}
	// err is why it cannot be reached; address and id tell it from others, as far as they are known. They are the
	// meeting's.
	err         error
	address, id string
}

// meeting finds out whether two of several Kubernetes clusters are the same, before anything is done there: what they
// are given by may lead to one API server, and two parts of a run would act on the same objects.
type meeting struct {
	mu  sync.Mutex
	all []*met
}

// meet has each of them say which it is. It waits for timeToMeet at most: who takes longer is looked at by ready. The
// only one there is need not say.
func (f *liveFlags) meet(ctx context.Context, places []place) (*meeting, error) {
	m := &meeting{}
	for _, p := range places {
		m.all = append(m.all, &met{place: p, flags: f.at(p), known: make(chan struct{})})
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
			return nil, usageError{fmt.Errorf("%s and %s are the same Kubernetes cluster, and both would act on the "+
				"same objects: leave one of them out", other.Name, one.Name)}
		}
	}
	return m, nil
}

// ask finds out which one it is.
func (m *meeting) ask(ctx context.Context, f *liveFlags, one *met) {
	defer close(one.known)
	ctx, cancel := context.WithTimeout(ctx, timeToAnswer)
	defer cancel()
	if err := panics.Catch(func() error { return m.find(ctx, f, one) }); err != nil {
		m.note(func() { one.err = err })
	}
}

func (m *meeting) find(ctx context.Context, f *liveFlags, one *met) (err error) {
	if one.flags.content, err = f.kubeconfigOf(ctx, one.place); err != nil {
		return err
	}
	if one.flags.found, err = one.flags.find(); err != nil { // once: what is asked now is what is acted on
		return err
	}
	client, err := one.flags.client()
	if err != nil {
		return err
	}
	m.note(func() { one.address = client.Address() })
	id, err := client.ClusterID(ctx)
	m.note(func() {
		if err == nil { // by its address, if not: who may not read it, or does not answer, finds out soon
			one.id = id
		}
		if other := one.sameAs(ours(m.all)); other != nil && !one.theirs() {
			one.err = other.again()
		}
	})
	return nil
}

func (m *meeting) note(what func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what()
}

// ready waits until it is known which one it is, as long as ctx has time: a program that signs in may never end. An
// error says why nothing can be done there.
func (m *meeting) ready(ctx context.Context, one *met) error {
	select {
	case <-one.known:
	case <-ctx.Done():
		return fmt.Errorf("ask which Kubernetes cluster it is: %w", context.Cause(ctx))
	}
	first := m.before(one)
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
		return other.again()
	}
	return one.err
}

// before are those that one gives way to if it is the same. What a kubeconfig of others leads to may say that it is
// any Kubernetes cluster, and is to keep nobody from that one: it gives way to all whose kubeconfig is ours, and to
// those of others that are listed before it.
func (m *meeting) before(one *met) []*met {
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

// theirs reports whether others have a say in how it is reached: who may write a Secret.
func (m *met) theirs() bool { return m.Secret != "" }

// ours are those of which nobody else says how they are reached.
func ours(all []*met) []*met {
	return slices.DeleteFunc(slices.Clone(all), (*met).theirs)
}

// again is why nothing is done in another one that is the same.
func (m *met) again() error {
	return fmt.Errorf("it is the same Kubernetes cluster as %s; leave one of them out", m.Name)
}

// sameAs is one of the others that is the same Kubernetes cluster; nil if none is, as far as is known.
func (m *met) sameAs(others []*met) *met {
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

// kubeconfigOf is the content of the kubeconfig in the Secret of a place, if it has one: in the Kubernetes cluster that
// the flags, or the pod, say.
func (f *liveFlags) kubeconfigOf(ctx context.Context, p place) ([]byte, error) {
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
