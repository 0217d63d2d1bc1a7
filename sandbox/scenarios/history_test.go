package scenarios

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	// historians is the number of concurrent clients. They use historyKeys keys and pause for pauseOfOne between
	// requests.
	historians  = 3
	historyKeys = 3
	pauseOfOne  = 40 * time.Millisecond
	// answerTimeout is the timeout of a request. A request that has timed out may still take effect.
	answerTimeout = 2 * time.Second
)

// history records the requests that applications send to a cluster during a scenario, and the responses.
type history struct {
	t     testing.TB
	stop  context.CancelFunc
	group sync.WaitGroup
	// keys is the prefix of the keys, which is unique to this history.
	keys string
	// begun is the time at which the clients started, to which the times of operations are relative.
	begun time.Time

	mutex      sync.Mutex
	operations []operation
	// failures counts failed writes by error.
	failures map[string]int
}

// watchWrites starts applications that write to and read from cluster a during the scenario. They know only the
// addresses of the given number of members, some of which may not exist yet.
func (w *world) watchWrites(members int) *history {
	w.t.Helper()
	return w.watchWritesBy(func() (*clientv3.Client, error) { return w.application(members) })
}

// watchWritesBy is like watchWrites, for applications that connect in a particular way.
func (w *world) watchWritesBy(connect func() (*clientv3.Client, error)) *history {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.ctx())
	h := &history{t: w.t, stop: stop, keys: fmt.Sprintf("history-%08x-", rand.Uint32()), begun: time.Now(), failures: map[string]int{}}
	for id := range historians {
		client, err := connect()
		if err != nil {
			stop()
			w.t.Fatal(err)
		}
		h.group.Go(func() {
			defer client.Close()
			h.ask(ctx, client, id)
		})
	}
	w.t.Cleanup(func() { stop(); h.group.Wait() })
	return h
}

// application connects to etcd like an application in a pod: to all members, by their DNS names.
func (w *world) application(members int) (*clientv3.Client, error) {
	security, err := w.clientTLS("a")
	if err != nil {
		return nil, err
	}
	scheme := "https"
	if security == nil {
		scheme = "http"
	}
	var endpoints []string
	for ordinal := range members {
		endpoints = append(endpoints, fmt.Sprintf("%s://a-%d.a.%s.svc:%d", scheme, ordinal, w.namespace, clientPort))
	}
	return w.applicationOf(endpoints, security)
}

// applicationOf connects to the members with the given client URLs. security is nil without TLS.
func (w *world) applicationOf(endpoints []string, security *tls.Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: security, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(w.dialMember),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second},
				MinConnectTimeout: answerTimeout,
			}),
		},
	})
}

// dialMember connects to the pod of the member with the given DNS name.
func (w *world) dialMember(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	pod, _, _ := strings.Cut(host, ".")
	return w.dialPod(ctx, w.namespace, pod, port)
}

// ask sends one request after another until ctx is done.
func (h *history) ask(ctx context.Context, client *clientv3.Client, id int) {
	seen := map[string]string{}
	for n := 0; ctx.Err() == nil; n++ {
		o := operation{client: id, key: fmt.Sprint(h.keys, rand.IntN(historyKeys)), value: fmt.Sprintf("%d-%d", id, n)}
		o.kind = []kind{put, get, swap}[rand.IntN(3)]
		o.expected = seen[o.key]
		o.call = time.Since(h.begun)
		err := o.do(ctx, client)
		o.answer = time.Since(h.begun)
		h.remember(o, err)
		if err == nil && o.kind == get {
			seen[o.key] = o.value
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauseOfOne):
		}
	}
}

func (h *history) remember(o operation, err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	switch {
	case err == nil:
		h.operations = append(h.operations, o)
	case o.kind != get:
		o.unknown = true
		h.operations = append(h.operations, o)
		h.failures[err.Error()]++
	}
}

// do sends the request to etcd and fills in the response.
func (o *operation) do(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	switch o.kind {
	case put:
		_, err := client.Put(ctx, o.key, o.value)
		return err
	case get:
		answer, err := client.Get(ctx, o.key)
		if err == nil {
			o.value = valueOf(answer)
		}
		return err
	case swap:
		return o.compareAndSwap(ctx, client)
	}
	return fmt.Errorf("nobody knows how to %s", o.kind)
}

func (o *operation) compareAndSwap(ctx context.Context, client *clientv3.Client) error {
	holds := clientv3.Compare(clientv3.Value(o.key), "=", o.expected)
	if o.expected == "" {
		holds = clientv3.Compare(clientv3.CreateRevision(o.key), "=", 0)
	}
	answer, err := client.Txn(ctx).If(holds).Then(clientv3.OpPut(o.key, o.value)).Else(clientv3.OpGet(o.key)).Commit()
	if err != nil {
		return err
	}
	if o.swapped = answer.Succeeded; !o.swapped {
		o.found = valueOf((*clientv3.GetResponse)(answer.Responses[0].GetResponseRange()))
	}
	return nil
}

func valueOf(answer *clientv3.GetResponse) string {
	if len(answer.Kvs) == 0 {
		return ""
	}
	return string(answer.Kvs[0].Value)
}

// end stops the clients, fails the test if an acknowledged write is lost, and summarizes the writes.
func (h *history) end() interruption {
	h.t.Helper()
	h.stop()
	h.group.Wait()
	took := time.Since(h.begun)
	if err := linearizable(h.operations, patience); err != nil {
		h.t.Errorf("the history of %d operations: %v", len(h.operations), err)
	}
	i := interrupted(h.operations, took)
	i.why = h.failures
	h.tell(i)
	if i.written == 0 {
		h.t.Error("nothing was ever written")
	}
	return i
}

func (h *history) tell(i interruption) { h.t.Logf("%s", i) }
