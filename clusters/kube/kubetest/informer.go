package kubetest

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Informer is a client-go shared informer for the ConfigMaps of a namespace, with a handler that keeps its own record
// of the objects.
type Informer struct {
	informer cache.SharedIndexInformer
	mu       sync.Mutex
	told     map[string]*corev1.ConfigMap
	wrong    []string
}

// Inform starts an informer and returns once it has listed the objects. The informer ends with the test.
func (s *Server) Inform(t *testing.T, namespace string) *Informer {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(namespace))
	i := &Informer{informer: factory.Core().V1().ConfigMaps().Informer(), told: map[string]*corev1.ConfigMap{}}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { i.tell(nil, now) },
		UpdateFunc: i.tell,
		DeleteFunc: func(last any) {
			if unknown, is := last.(cache.DeletedFinalStateUnknown); is {
				last = unknown.Obj
			}
			i.tell(last, nil)
		},
	}
	handling, err := i.informer.AddEventHandler(handler)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), handling.HasSynced) {
		t.Fatal("the informer has not listed its objects")
	}
	return i
}

// tell records an event with the old and the new object. Either of them may be nil.
func (i *Informer) tell(before, now any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	was, _ := before.(*corev1.ConfigMap)
	is, _ := now.(*corev1.ConfigMap)
	known := is
	if known == nil {
		known = was
	}
	if !same(i.told[known.Name], was, is == nil) {
		i.wrong = append(i.wrong, fmt.Sprintf("%s was %v, and the event reports %v", known.Name, i.told[known.Name],
			was))
	}
	if is == nil {
		delete(i.told, known.Name)
		return
	}
	i.told[is.Name] = is
}

// same reports whether an event is consistent with the previous events. The object in a deletion event has the
// resourceVersion of the deletion.
func same(told, was *corev1.ConfigMap, deleted bool) bool {
	if deleted && told != nil && was != nil {
		was = was.DeepCopy()
		was.ResourceVersion = told.ResourceVersion
	}
	return apiequality.Semantic.DeepEqual(told, was)
}

// Told returns the handler's record by name, and the inconsistent events.
func (i *Informer) Told() (told map[string]*corev1.ConfigMap, wrong []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.told), append([]string(nil), i.wrong...)
}

// Store returns the informer's objects by name.
func (i *Informer) Store() map[string]*corev1.ConfigMap {
	found := map[string]*corev1.ConfigMap{}
	for _, object := range i.informer.GetStore().List() {
		c := object.(*corev1.ConfigMap)
		found[c.Name] = c
	}
	return found
}
