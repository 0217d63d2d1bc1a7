package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is the environment of a test: a namespace, and a git repository that declares the clusters in it.
type world struct {
	*sandbox
	t          testing.TB
	namespace  string
	repository *repository
	// source is the source that quorate reads: the bare repository by default.
	source string

	mutex sync.Mutex
	runs  []result
}

// newWorld creates a namespace for the test. Like all namespaces here, it enforces the restricted Pod Security
// Standard.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{sandbox: theSandbox(t), t: t, repository: newRepository(t)}
	w.source = w.repository.bare
	w.namespace = fmt.Sprintf("%.40s-%08x", slug(t.Name()), rand.Uint32()) // a test may create a hundred worlds
	w.enter()
	return w
}

// enter creates the namespace, which is deleted at the end of the test.
func (w *world) enter() {
	w.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   w.namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if _, err := w.kube.CoreV1().Namespaces().Create(w.ctx(), namespace, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.leave)
}

// ctx returns a context that, unlike the context of the test, is still valid during cleanup.
func (w *world) ctx() context.Context { return context.WithoutCancel(w.t.Context()) }

// as returns the same world for a subtest.
func (w *world) as(t *testing.T) *world {
	repository := *w.repository
	repository.t = t
	sub := &world{sandbox: w.sandbox, t: t, namespace: w.namespace, repository: &repository, source: w.source}
	t.Cleanup(func() {
		if t.Failed() {
			sub.dump()
		}
	})
	return sub
}

func (w *world) leave() {
	if w.t.Failed() {
		w.dump()
		if os.Getenv("QUORATE_KEEP_SANDBOX") == "1" {
			w.t.Logf("namespace %s is kept", w.namespace)
			return
		}
	}
	err := w.kube.CoreV1().Namespaces().Delete(w.ctx(), w.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

func slug(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Benchmark")
	return "s-" + strings.Trim(notLabel.ReplaceAllString(strings.ToLower(name), "-"), "-")
}
