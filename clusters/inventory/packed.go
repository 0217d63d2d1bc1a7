package inventory

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
)

// packed is an object in protobuf encoding, which takes only a fraction of the memory of the decoded object.
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
		return nil, fmt.Errorf("unpack a listed %s: %w", p.of.Name(), err)
	}
	return object, nil
}

// kindOf returns the kind of an object, which the API server omits from lists. Its Go type has the same name.
func kindOf(object metav1.Object) string { return reflect.TypeOf(object).Elem().Name() }

// contents holds the objects of a cluster until it is opened.
type contents struct {
	mu      sync.Mutex
	objects []packed
	// gone is set if the objects have been returned or were never kept.
	gone bool
}

// errGone is returned if a cluster has already been opened, or may not be opened.
var errGone = errors.New("the listed objects of the cluster are no longer kept; list the clusters again")

// Open unpacks the listed objects. It succeeds only once, because it discards the packed objects. A second call returns
// an error, so that the missing objects are not mistaken for an empty cluster.
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

// take returns the objects and discards them. It returns nil if nothing was listed.
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
