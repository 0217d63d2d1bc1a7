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
	// Manager is the field manager of everything that is applied but status.
	Manager = "quorate"
	// statusManager is the field manager of status: apart, so that applying one never gives up the
	// other.
	statusManager = "quorate-status"
	// requestTimeout bounds each request but watches and port-forwards, so that a hanging API
	// server ends a pass.
	requestTimeout = 10 * time.Second
)

// Client talks to one API server.
type Client struct {
	config  *rest.Config
	typed   groups
	dynamic dynamic.Interface
	// heads tells of objects nothing but their metadata, and watches does so without the bounds of requests.
	heads, watches metadata.Interface
	// told is the API server's clock, as its answers tell it.
	told *clock
	// user is who makes the requests; empty if that is not known.
	user string
}

// New returns a client for that configuration. It leaves the pace of requests to the API server's
// own priority and fairness. Kubernetes' own kinds come in protobuf, which takes a fraction of the time
// to decode that JSON does.
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
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(asking)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	heads, err := metadata.NewForConfig(asking)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	watches, err := metadata.NewForConfig(watching)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return &Client{config: watching, typed: typed, dynamic: dyn, heads: heads, watches: watches, told: told,
		user: userOf(config)}, nil
}

// Host is the address of the API server, for messages.
func (c *Client) Host() string { return c.config.Host }
