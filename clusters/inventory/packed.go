package inventory

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
)

// packed is an object as protobuf has it: that takes a fraction of the memory.
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

// kindOf is the kind of an object, which the API server leaves out of what it lists. Go calls its type the same.
func kindOf(object metav1.Object) string { return reflect.TypeOf(object).Elem().Name() }

// contents are the objects of a cluster until that is looked at.
type contents struct {
	mu      sync.Mutex
	objects []packed
	// gone: they were given to whoever looked at the cluster, or never kept.
	gone bool
}

// errGone is what is said of a cluster that is looked at again, or by whom it is not for.
var errGone = errors.New("what was listed of it is not kept any more; it has to be listed again")

// Open unpacks what was listed, for whoever looks at the cluster. It does so once: nothing is kept of what has been
// looked at, and nothing is concluded from what is not known any more.
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

// take gives away the objects. There are none where nothing was listed.
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
