package scenarios

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	clientPort = 2379
	peerPort   = 2380
)

// member is a client for the etcd member in one pod, connected to the client port of that pod.
type member struct {
	*clientv3.Client
	t        testing.TB
	name     string
	endpoint string
	// timeout is the timeout of a request.
	timeout time.Duration
	close   func()
}

// member connects to etcd in the pod with the given ordinal, with the client Secret, as an application would.
func (w *world) member(cluster string, ordinal int) *member {
	w.t.Helper()
	return w.memberAs(cluster+"-client-tls", cluster, ordinal)
}

// memberAs connects to a member with the certificate in a Secret.
func (w *world) memberAs(secret, cluster string, ordinal int) *member {
	w.t.Helper()
	m, err := w.connectAs(secret, cluster, ordinal)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(m.close)
	m.timeout = 20 * time.Second
	return m
}

// connectTo connects to a member, for callers that retry if the member does not respond quickly.
func (w *world) connectTo(cluster string, ordinal int) (*member, error) {
	return w.connectAs(cluster+"-client-tls", cluster, ordinal)
}

func (w *world) connectAs(secret, cluster string, ordinal int) (*member, error) {
	name := fmt.Sprintf("%s-%d", cluster, ordinal)
	security, err := w.secretTLS(secret)
	if err != nil {
		return nil, err
	}
	address, stop, err := w.forward(name, clientPort)
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if security != nil {
		scheme = "https://"
		security.ServerName = fmt.Sprintf("%s.%s.%s.svc", name, cluster, w.namespace)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{scheme + address}, TLS: security, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		stop()
		return nil, fmt.Errorf("connect to etcd in %s: %w", name, err)
	}
	m := &member{Client: client, t: w.t, name: name, endpoint: scheme + address, timeout: 2 * time.Second}
	m.close = func() { _ = client.Close(); stop() }
	return m, nil
}

// clientTLS returns the TLS configuration from the client Secret, or nil for a cluster without TLS.
func (w *world) clientTLS(cluster string) (*tls.Config, error) {
	return w.secretTLS(cluster + "-client-tls")
}

func (w *world) secretTLS(name string) (*tls.Config, error) {
	secret, err := w.kube.CoreV1().Secrets(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return nil, fmt.Errorf("read the certificate in Secret %s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, fmt.Errorf("Secret %s holds no CA", name)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func (m *member) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(m.t.Context()), m.timeout)
}

// put writes a key. get reads a key with a linearizable read.
func (m *member) put(key, value string) {
	m.t.Helper()
	ctx, cancel := m.ctx()
	defer cancel()
	if _, err := m.Put(ctx, key, value); err != nil {
		m.t.Fatalf("put %s by %s: %v", key, m.name, err)
	}
}

func (m *member) get(key string) string {
	m.t.Helper()
	ctx, cancel := m.ctx()
	defer cancel()
	answer, err := m.Get(ctx, key)
	if err != nil {
		m.t.Fatalf("get %s from %s: %v", key, m.name, err)
	}
	if len(answer.Kvs) == 0 {
		return ""
	}
	return string(answer.Kvs[0].Value)
}

// list returns etcd's member list in order. Each member is described by its name, its ID, whether it has started, and
// whether it is a learner.
func (m *member) list() ([]string, error) {
	ctx, cancel := m.ctx()
	defer cancel()
	answer, err := m.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range answer.Members {
		list = append(list, fmt.Sprintf("%s %x started=%t learner=%t", e.Name, e.ID, len(e.ClientURLs) > 0, e.IsLearner))
	}
	slices.Sort(list)
	return list, nil
}

// requireOneCluster queries every member separately. It fails the test unless the members form one healthy cluster of
// the given size, in which all of them report the same cluster ID, leader, list of started voters, and data. It returns
// the cluster ID in hexadecimal.
func (w *world) requireOneCluster(cluster string, size int) string {
	w.t.Helper()
	var first view
	eventually(w.t, "one healthy cluster "+cluster, func() (err error) {
		first, err = w.oneCluster(cluster, size)
		return err
	})
	return first.clusterID
}

func (w *world) oneCluster(cluster string, size int) (view, error) {
	var members []*member
	for ordinal := range size {
		m, err := w.connectTo(cluster, ordinal)
		if err != nil {
			return view{}, err
		}
		defer m.close()
		members = append(members, m)
	}
	revision, err := members[0].revision()
	if err != nil {
		return view{}, err
	}
	var first view
	for i, m := range members {
		seen, err := m.view(revision)
		if err != nil {
			return view{}, fmt.Errorf("%s: %w", m.name, err)
		}
		if i == 0 {
			first = seen
		}
		if seen != first {
			return view{}, fmt.Errorf("%s sees %+v, %s sees %+v", members[0].name, first, m.name, seen)
		}
	}
	if n := strings.Count(first.members, "started=true learner=false"); n != size || strings.Count(first.members, "started=") != size {
		return view{}, fmt.Errorf("want %d started voters, have %s", size, first.members)
	}
	return first, nil
}

// view is a member's view of the cluster. In a healthy cluster, all members have the same view.
type view struct {
	clusterID string
	leader    uint64
	members   string
	hash      uint32
}

func (m *member) revision() (int64, error) {
	ctx, cancel := m.ctx()
	defer cancel()
	answer, err := m.Get(ctx, "revision") // a linearizable read, so the result is committed
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// waitForQuorum waits until the member can write. If the leader has stopped, the other members must first elect a new
// leader.
func (m *member) waitForQuorum() {
	m.t.Helper()
	eventually(m.t, m.name+" can write", func() error {
		ctx, cancel := m.ctx()
		defer cancel()
		_, err := m.Put(ctx, "written", m.name)
		return err
	})
}

func (m *member) view(revision int64) (view, error) {
	ctx, cancel := m.ctx()
	defer cancel()
	status, err := m.Status(ctx, m.endpoint)
	if err != nil {
		return view{}, err
	}
	if status.Leader == 0 {
		return view{}, errors.New("knows no leader")
	}
	if _, err := m.Get(ctx, "revision"); err != nil { // makes sure that the member has caught up with the leader
		return view{}, err
	}
	hash, err := m.HashKV(ctx, m.endpoint, revision)
	if err != nil {
		return view{}, err
	}
	members, err := m.list()
	if err != nil {
		return view{}, err
	}
	return view{clusterID: fmt.Sprintf("%x", status.Header.ClusterId), leader: status.Leader, members: strings.Join(members, ", "), hash: hash.Hash}, nil
}
