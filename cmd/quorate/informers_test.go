package main

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube/kubetest"
)

// TestInformersConvergeAfterRestore restores the etcd of a kube-apiserver from a backup, and compares the contents of a
// client-go informer with etcd. As in controllers, the informer runs the whole time, so it has seen changes that are
// not in the backup.
//
// The Kubernetes documentation tells operators to stop kube-apiserver before etcd, and to start it again afterwards. If
// kube-apiserver keeps running, it has a bigger problem, because its watch cache also keeps its content. Only raising
// the revision solves that problem.
func TestInformersConvergeAfterRestore(t *testing.T) {
	t.Run("kube-apiserver is restarted", func(t *testing.T) {
		t.Parallel()
		r := newRewinding(t)
		r.server.Kill()
		r.restore()
		r.server.Run(t)
		r.missesNothing()
		if err := r.createEvent("new"); err != nil {
			t.Error(err)
		}
	})
	t.Run("kube-apiserver stays up", func(t *testing.T) {
		t.Parallel()
		r := newRewinding(t)
		r.restore()
		r.missesNothing()
		// The API server continues to use the lease of earlier Events for up to a minute, so docs/how-to/back-up.md
		// restarts the API server.
		if err := r.createEvent("new"); err == nil || !strings.Contains(err.Error(), "requested lease not found") {
			t.Error(err)
		}
	})
	t.Run("kube-apiserver stays up and the revision is not raised", func(t *testing.T) {
		t.Parallel()
		r := newRewinding(t)
		r.restore("--revision-bump", "0")
		r.missesAll()
	})
}

// rewinding is a namespace with ConfigMaps, an informer that watches them, and a backup of etcd. The informer has seen
// changes made after the backup.
type rewinding struct {
	*testing.T
	server   *kubetest.Server
	informer *kubetest.Informer
	backup   string
	names    map[string]bool
	writes   int
}

// configMaps maps names to ConfigMaps.
type configMaps = map[string]*corev1.ConfigMap

const (
	informed = "default" // the namespace
	busy     = "busy"    // a ConfigMap that is written repeatedly
)

func newRewinding(t *testing.T) *rewinding {
	t.Helper()
	r := &rewinding{T: t, server: kubetest.Start(t), backup: filepath.Join(t.TempDir(), "a.db"), names: map[string]bool{}}
	// Wait until the API server has created the few hundred objects that it creates at startup. Otherwise, it would
	// create them again after the restore.
	r.until("the API server has made all that it makes as it starts", func() bool {
		return r.server.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error() == nil
	})
	for _, name := range []string{"kept", "gone"} {
		r.put(name, "first")
	}
	r.informer = r.server.Inform(t, informed)
	for _, name := range []string{"kept", "updated", "deleted", "recreated", "removed", busy} {
		r.put(name, "before")
	}
	r.remove("gone")
	r.quorate("backup", "ns/a", "--to", r.backup, "--member", "default="+r.server.Etcd.URL)

	for _, name := range []string{"updated", "created", "created-again"} {
		r.put(name, "after")
	}
	r.remove("deleted")
	r.remove("recreated")
	r.put("recreated", "after")
	// Create more revisions than the changes after the restore. Without a bump, these changes then reuse earlier
	// revisions.
	for range 100 {
		r.put(busy, "after")
	}
	if err := r.createEvent("after"); err != nil {
		t.Fatal(err)
	}
	r.converges()
	return r
}

// restore restores etcd from the backup, and starts it exactly as the output of the command instructs.
func (r *rewinding) restore(flags ...string) {
	r.Helper()
	r.server.Etcd.Stop(r.T)
	said := r.quorate(append([]string{"restore", "--from", r.backup, "--data-dir", filepath.Join(r.TempDir(), "data"),
		"--peer-url", r.server.Etcd.PeerURL}, flags...)...)
	var start []string
	for line := range strings.Lines(said) {
		if flag := strings.TrimSpace(line); strings.HasPrefix(flag, "--") {
			start = append(start, flag)
		}
	}
	r.server.Etcd.Run(r.T, start...)
}

// missesNothing requires that the informer and its handler converge to the actual state, and that every LIST from the
// first request on returns that state.
func (r *rewinding) missesNothing() {
	r.Helper()
	restored := r.first()
	if listed := r.list(); !apiequality.Semantic.DeepEqual(listed, restored) {
		r.Errorf("the first LIST returns %v, but the state is %v", values(listed), values(restored))
	}
	r.change()
	r.converges()
	want := map[string]string{
		"kept": "new", "updated": "before", "deleted": "before", "recreated": "before", "created-again": "new",
		"created-new": "new", busy: "new",
	}
	if got := values(r.informer.Store()); !maps.Equal(got, want) {
		r.Errorf("the informer has %v, want %v", got, want)
	}
}

// missesAll requires that, without a bump, the API server's watch cache and the informer keep objects that are not in
// the backup, and miss changes made after the restore until the revision has caught up. Events are ordered by revision:
// once a later event has arrived, earlier events are lost.
func (r *rewinding) missesAll() {
	r.Helper()
	r.first()
	r.change()
	r.until("the informer sees a change again", func() bool {
		for range 20 {
			r.put(busy, "new")
		}
		return values(r.informer.Store())[busy] == "new"
	})
	want := map[string]string{
		"kept": "before", "updated": "after", "removed": "before", "recreated": "after", "created": "after",
		"created-again": "after", busy: "new",
	}
	if got := values(r.informer.Store()); !maps.Equal(got, want) {
		r.Errorf("the informer has %v, want %v: the counter-proof does not work", got, want)
	}
	if got := values(r.list()); !maps.Equal(got, want) {
		r.Errorf("a LIST returns %v, want %v", got, want)
	}
}

// first waits until the API server responds after the restore, and returns the actual state.
func (r *rewinding) first() configMaps {
	r.Helper()
	r.until("the API server answers", func() bool {
		_, err := r.server.Client.CoreV1().ConfigMaps(informed).Get(r.Context(), "kept", metav1.GetOptions{})
		return err == nil
	})
	is := r.truth()
	want := map[string]string{
		"kept": "before", "updated": "before", "deleted": "before", "recreated": "before", "removed": "before",
		busy: "before",
	}
	if got := values(is); !maps.Equal(got, want) {
		r.Fatalf("%v is restored, want %v", got, want)
	}
	return is
}

// change makes the changes that follow the restore.
func (r *rewinding) change() {
	r.Helper()
	for _, name := range []string{"kept", "created-again", "created-new"} {
		r.put(name, "new")
	}
	r.remove("removed")
	r.put(busy, "new")
}

// converges waits until the informer and its handler have the actual state, and requires that a LIST returns the same
// state.
func (r *rewinding) converges() {
	r.Helper()
	is := r.truth()
	if listed := r.list(); !apiequality.Semantic.DeepEqual(listed, is) {
		r.Fatalf("a LIST returns %v, but the state is %v", values(listed), values(is))
	}
	r.until(fmt.Sprintf("the informer has %v", values(is)), func() bool {
		told, _ := r.informer.Told()
		return apiequality.Semantic.DeepEqual(r.informer.Store(), is) && apiequality.Semantic.DeepEqual(told, is)
	})
	if _, wrong := r.informer.Told(); len(wrong) > 0 {
		r.Errorf("events that do not follow from those before: %q", wrong)
	}
}

// truth returns the state in etcd. It uses a GET for each object, which bypasses the watch cache.
func (r *rewinding) truth() configMaps {
	r.Helper()
	found := configMaps{}
	for name := range r.names {
		object, err := r.server.Client.CoreV1().ConfigMaps(informed).Get(r.Context(), name, metav1.GetOptions{})
		switch {
		case err == nil:
			found[name] = object
		case !apierrors.IsNotFound(err):
			r.Fatal(err)
		}
	}
	return found
}

func (r *rewinding) list() configMaps {
	r.Helper()
	listed, err := r.server.Client.CoreV1().ConfigMaps(informed).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	found := configMaps{}
	for _, object := range listed.Items {
		found[object.Name] = &object
	}
	return found
}

// put creates or updates a ConfigMap. Each write has different content.
func (r *rewinding) put(name, value string) {
	r.Helper()
	r.names[name] = true
	r.writes++
	data := map[string]string{"value": value, "write": fmt.Sprint(r.writes)}
	client := r.server.Client.CoreV1().ConfigMaps(informed)
	object, err := client.Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		_, err = client.Create(r.Context(), object, metav1.CreateOptions{})
	} else if err == nil {
		object.Data = data
		_, err = client.Update(r.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		r.Fatalf("write %s: %v", name, err)
	}
}

func (r *rewinding) remove(name string) {
	r.Helper()
	err := r.server.Client.CoreV1().ConfigMaps(informed).Delete(r.Context(), name, metav1.DeleteOptions{})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rewinding) createEvent(name string) error {
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{Namespace: informed},
	}
	_, err := r.server.Client.CoreV1().Events(informed).Create(r.Context(), event, metav1.CreateOptions{})
	return err
}

// quorate runs a command line in this process, and returns its output. The command must succeed.
func (r *rewinding) quorate(args ...string) string {
	r.Helper()
	var said bytes.Buffer
	if code := execute(r.Context(), args, streams{out: &said, err: &said}); code != exitOK {
		r.Fatalf("exit code %d: %s", code, said.String())
	}
	return said.String()
}

// until waits until a condition is true.
func (r *rewinding) until(fact string, is func() bool) {
	r.Helper()
	for deadline := time.Now().Add(45 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			if r.informer == nil {
				r.Fatalf("waited without success until %s", fact)
			}
			told, wrong := r.informer.Told()
			r.Fatalf("waited without success until %s; it has %v, its handler received %v, wrong events are %q", fact,
				values(r.informer.Store()), values(told), wrong)
		}
	}
}

// values returns the values of ConfigMaps by name.
func values(of configMaps) map[string]string {
	found := map[string]string{}
	for name, object := range of {
		found[name] = object.Data["value"]
	}
	return found
}
