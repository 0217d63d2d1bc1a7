package kube

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// Manager is the field manager of everything that Quorate applies except status.
	Manager = "quorate"
	// statusManager is the field manager of status. With a single manager, applying the status would give up the
	// ownership of all other fields, and vice versa.
	statusManager = "quorate-status"
	// requestTimeout limits each request except watches and port-forwards, so that a pass ends if the API server
	// hangs.
	requestTimeout = 10 * time.Second
)

// Client is a client of one API server.
type Client struct {
	config  *rest.Config
	typed   groups
	dynamic dynamic.Interface
	// heads reads only the metadata of objects. watches does the same, but without the request limits.
	heads, watches metadata.Interface
	// told is the API server's clock as derived from its responses.
	told *clock
	// user is the name of the user that makes the requests, or empty if unknown.
	user string
}

// New returns a client for config. It leaves rate limiting to API Priority and Fairness. Built-in kinds are transferred
// as protobuf, which is much faster to decode than JSON.
func New(config *rest.Config) (*Client, error) {
	watching := rest.CopyConfig(config)
	watching.QPS = -1
	told := &clock{}
	watching.Wrap(told.reads)
	watching.Wrap(withoutRedirects)
	asking := rest.CopyConfig(watching)
	asking.Timeout = requestTimeout
	asking.Wrap(bounded)
	compact := rest.CopyConfig(asking)
	compact.ContentType = runtime.ContentTypeProtobuf
	compact.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := newGroups(compact)
	if err != nil {
		return nil, fmt.Errorf("create a Kubernetes client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(asking)
	if err != nil {
		return nil, fmt.Errorf("create a Kubernetes client: %w", err)
	}
	heads, err := metadata.NewForConfig(asking)
	if err != nil {
		return nil, fmt.Errorf("create a Kubernetes client: %w", err)
	}
	watches, err := metadata.NewForConfig(watching)
	if err != nil {
		return nil, fmt.Errorf("create a Kubernetes client: %w", err)
	}
	return &Client{config: watching, typed: typed, dynamic: dyn, heads: heads, watches: watches, told: told,
		user: userOf(config)}, nil
}

// Host returns the address of the API server, for messages.
func (c *Client) Host() string { return c.config.Host }
