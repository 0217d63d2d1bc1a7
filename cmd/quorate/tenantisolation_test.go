package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// troubles lists problems with a tenant's source. Each of them affects the second of two tenants, b, after the sources
// of both were applied. of causes the problem, and returns the value of --source to use from then on. condition is the
// condition that cluster b/one then reports, and want is part of its message.
var troubles = []struct {
	name      string
	of        func(w *tenants, tenant, other string) string
	condition string
	want      string
}{
	{"unreadable", func(w *tenants, b, _ string) string {
		if err := os.Rename(w.repository(b), w.repository(b)+"-gone"); err != nil {
			w.Fatal(err)
		}
		return w.repository(b)
	}, v1alpha1.ConditionSourceReady, "SourceReady=False the source cannot be read: open "},
	{"no YAML", func(w *tenants, b, _ string) string {
		w.push(b, b+"/two", "a: [")
		return w.repository(b)
	}, v1alpha1.ConditionStalled, "Stalled=True "},
	{"broken", func(w *tenants, b, _ string) string {
		w.push(b, b+"/two", "{apiVersion: etcd.quorate.dev/v1alpha1, kind: EtcdCluster, metadata: {name: one, namespace: "+b+"}, spec: {version: x}}")
		return w.repository(b)
	}, v1alpha1.ConditionStalled, "Stalled=True "},
	{"declares a cluster of the other", func(w *tenants, b, a string) string {
		w.push(b, b+"/one", b+"/two", a+"/one")
		return w.repository(b)
	}, v1alpha1.ConditionStalled, "Stalled=False "},
	{"declares a cluster of the other badly", func(w *tenants, b, a string) string {
		w.push(b, b+"/one", b+"/two", "{apiVersion: etcd.quorate.dev/v1alpha1, kind: EtcdCluster, metadata: {name: one, namespace: "+a+"}, spec: {version: x}}")
		return w.repository(b)
	}, v1alpha1.ConditionStalled, "Stalled=False "},
	{"renamed", func(w *tenants, b, _ string) string {
		w.push(b, b+"/two", b+"/three")
		return w.repository(b)
	}, v1alpha1.ConditionOrphaned, "/three"},
	{"removed", func(w *tenants, b, _ string) string {
		w.push(b)
		return w.repository(b)
	}, v1alpha1.ConditionRemovalHeld, "RemovalHeld=True main@sha1:"},
	{"rewound", func(w *tenants, b, _ string) string {
		w.git(b, "reset", "--quiet", "--hard", "HEAD^")
		return w.repository(b)
	}, v1alpha1.ConditionSourceReady, "SourceReady=False main@sha1:"},
	{"not signed", func(w *tenants, b, _ string) string {
		w.push(b, b+"/one", b+"/two", b+"/three")
		return w.repository(b) + ",verify-keys=" + w.keys()
	}, v1alpha1.ConditionSourceReady, "SourceReady=False the source cannot be read: "},
}

// keys returns a file that contains the public key of a signer who has not signed anything.
func (w *tenants) keys() string {
	w.Helper()
	path := filepath.Join(w.dir, "key.sshpub")
	w.write("key.sshpub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f nobody@example.com\n")
	return path
}

// told returns everything that is reported about the clusters in a namespace: custom resources, events and log lines.
func (w *tenants) told(namespace string, got ran) string {
	w.Helper()
	var customs []*v1alpha1.EtcdCluster
	for _, listed := range w.listed(namespace) {
		customs = append(customs, listed.Custom)
	}
	events, err := w.server.Client.EventsV1().Events(namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if len(customs) == 0 {
		w.Fatalf("no clusters in %s", namespace)
	}
	told, err := json.Marshal([]any{customs, events.Items})
	if err != nil {
		w.Fatal(err)
	}
	text := string(told)
	for line := range strings.Lines(got.err) {
		if strings.Contains(line, "cluster="+namespace+"/") {
			text += line
		}
	}
	return text
}

// hides fails if the reports about one tenant's clusters contain anything about the other tenant.
func (w *tenants) hides(got ran, of, other string) {
	w.Helper()
	told := w.told(of, got)
	secrets := []string{other + "/one", other + "/two", other + "/three", idOf(other + "/one"), idOf(other + "/two"), "private-to-" + other}
	if _, err := os.Stat(w.repository(other)); err == nil {
		secrets = append(secrets, strings.Fields(w.git(other, "rev-list", "--all", "--reflog"))...)
	}
	for _, secret := range secrets {
		if at := strings.Index(told, secret); at >= 0 {
			w.Errorf("%q of %s is visible to %s: …%s…", secret, other, of, told[max(0, at-200):min(len(told), at+100)])
		}
	}
}

// TestTenantsAreIsolated checks that a problem with one tenant's source does not delay the other tenant, and that
// neither tenant learns anything about the other from its own clusters.
func TestTenantsAreIsolated(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	var namespaces []string
	for i := range troubles {
		namespaces = append(namespaces, fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i))
	}
	all := newTenants(t, namespaces...)
	for i, trouble := range troubles {
		a, b := namespaces[2*i], namespaces[2*i+1]
		t.Run(trouble.name, func(t *testing.T) {
			w := *all
			w.T = t
			w.made(a+"/one", a+"/two", b+"/one", b+"/two")
			w.push(a, a+"/one", a+"/two")
			w.push(b)
			w.push(b, b+"/one", b+"/two")
			bound := []string{"--allow-namespace", a + ";" + b} // other tests may have left clusters behind
			if got := w.run(append(bound, w.sources(a, b)...)...); got.code != exitOK {
				t.Fatalf("%+v", got)
			}
			location := trouble.of(&w, b, a)
			next := w.push(a, a+"/one", a+"/two", a+"/new")
			got := w.run(append(bound, "--source", w.repository(a), "--source", location)...)
			for _, name := range []string{a + "/one", a + "/two"} {
				c := w.cluster(name)
				if c.Status.SourceRevision != "main@sha1:"+next || c.Status.DeclaredRevision != "main@sha1:"+next || c.Status.DeclaredSource != w.repository(a) {
					t.Errorf("%s is delayed: %+v\n%s", name, c.Status, got.out)
				}
				for kind, want := range map[string]string{
					v1alpha1.ConditionSourceReady: "SourceReady=True main@sha1:" + next, v1alpha1.ConditionOrphaned: "", v1alpha1.ConditionRemovalHeld: "",
					v1alpha1.ConditionStalled: "Stalled=False lifecycle Stopped: nothing is running",
				} {
					if said := w.condition(name, kind); said != want {
						t.Errorf("%s has %q, want %q", name, said, want)
					}
				}
			}
			if !strings.Contains(got.out, a+"/new  Done") {
				t.Errorf("a new cluster is delayed:\n%s", got.out)
			}
			if said := w.condition(b+"/one", trouble.condition); !strings.Contains(said, trouble.want) {
				t.Errorf("%s/one has %q, want %q\n%s", b, said, trouble.want, got.out)
			}
			w.hides(got, a, b)
			w.hides(got, b, a)
		})
	}
}

// TestClusterIsNotTakenOverByAnotherSource checks that a cluster belongs to its source until that source releases it.
// No other source takes it over, even while its own source cannot be read.
func TestClusterIsNotTakenOverByAnotherSource(t *testing.T) {
	w := newTenants(t, "a", "b")
	w.made("a/one", "a/two", "b/one")
	w.push("a", "a/one", "a/two")
	w.push("b", "b/one")
	if got := w.run(w.sources("a", "b")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	w.push("b", "b/one", "a/one")
	if err := os.Rename(w.repository("a"), w.repository("a")+"-gone"); err != nil {
		t.Fatal(err)
	}
	got := w.run(w.sources("a", "b")...)
	if c := w.cluster("a/one"); c.Status.DeclaredSource != w.repository("a") || !strings.Contains(got.out, "cluster a/one belongs to a different source, which has not released it: "+w.repository("a")) {
		t.Errorf("it was taken over: %+v\n%s", c.Status, got.out)
	}
	if said := w.condition("a/one", v1alpha1.ConditionStalled); !strings.HasPrefix(said, "Stalled=False") {
		t.Errorf("it is delayed: %s", said)
	}
	if err := os.Rename(w.repository("a")+"-gone", w.repository("a")); err != nil {
		t.Fatal(err)
	}
	w.push("a", "a/two")
	if got := w.run(w.sources("a", "b")...); got.code != exitOK || w.cluster("a/one").Status.DeclaredSource != w.repository("b") {
		t.Errorf("a released cluster is not taken over: %d %+v\n%s", got.code, w.cluster("a/one").Status, got.out)
	}
}

// TestClusterDeclaredByTwoSourcesIsStalled checks that a cluster is stalled if two sources declare it and neither has
// declared it before, because the intended source is unknown. The cluster's status does not name either source.
func TestClusterDeclaredByTwoSourcesIsStalled(t *testing.T) {
	w := newTenants(t, "a", "b", "c")
	w.made("a/one", "b/one", "c/both")
	w.push("a", "a/one", "c/both")
	w.push("b", "b/one", "c/both")
	got := w.run(w.sources("a", "b")...)
	if got.code != exitInvalid || !strings.Contains(got.out, "cluster c/both is also declared by a different source: "+w.repository("b")) {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	if said := w.condition("c/both", v1alpha1.ConditionStalled); !strings.Contains(said, "Stalled=True") || !strings.Contains(said, "more than one source declares the cluster") {
		t.Errorf("got %s", said)
	}
	w.hides(got, "c", "a")
	w.hides(got, "c", "b")
	for _, name := range []string{"a/one", "b/one"} {
		if said := w.condition(name, v1alpha1.ConditionStalled); !strings.HasPrefix(said, "Stalled=False") {
			t.Errorf("%s is delayed: %s", name, said)
		}
	}
}
