package inventory

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
)

// packed is an object in protobuf encoding, which takes a fraction of the memory.
type packed struct {
	of   reflect.Type
	body []byte
}

func pack(object kube.Object) (packed, error) {
	body, err := object.Marshal()
	if err != nil {
		return packed{}, fmt.Errorf("pack %s %s/%s: %w", kindOf(object), object.GetNamespace(), object.GetName(), err)
	}
	return packed{reflect.TypeOf(object).Elem(), body}, nil
}

func (p packed) unpack() (kube.Object, error) {
	object := reflect.New(p.of).Interface().(kube.Object)
	if err := object.Unmarshal(p.body); err != nil {
		return nil, fmt.Errorf("unpack a %s that was listed: %w", p.of.Name(), err)
	}
	return object, nil
}

// kindOf returns the kind of an object, which the API server omits from lists. Its Go type has the same name.
func kindOf(object metav1.Object) string { return reflect.TypeOf(object).Elem().Name() }

// contents holds the objects of a cluster until it is opened.
type contents struct {
	mu      sync.Mutex
	objects []packed
	// gone: the objects were handed out, or never kept.
	gone bool
}

// errGone is returned if a cluster is opened again, or may not be opened.
var errGone = errors.New("what was listed of it is not kept any more; it has to be listed again")

// Open unpacks what was listed. It works only once, because nothing is kept after that; a second call returns an error,
// so that missing objects are not mistaken for an empty cluster.
func (l *Listed) Open() (*Cluster, error) {
	c := &Cluster{Custom: l.Custom, Objects: map[string]metav1.Object{}}
	packed, err := l.contents.take()
	if err != nil {
		return nil, err
	}
	for _, p := range packed {
		object, err := p.unpack()
		if err != nil {
			return nil, err
		}
		c.add(object)
	}
	return c, nil
}

// take hands out the objects. It returns nil if nothing was listed.
func (c *contents) take() ([]packed, error) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, errGone
	}
	objects := c.objects
	c.objects, c.gone = nil, true
	return objects, nil
}
