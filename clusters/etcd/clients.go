// Package etcd asks etcd itself who its members are and how each of them is, and has it change who
// they are. It is the only package that speaks etcd's protocol; what it learns it says in the words
// of package decide.
//
// Each member is asked over a connection of its own, so that an answer is known to be that
// member's. The connections are gRPC's with the defaults of etcd's client left out: that client
// waits for a connection to come up, retries a hundred times, and dials again for each Status. A
// pass wants to know now, and only now, whether a member answers.
package etcd

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/reconcile/panics"
)

// DefaultTimeout is how long a member has for one answer. It is above the time that etcd takes to
// elect a leader with its default options (1 to 2 s), and short enough for a pass to wait for.
const DefaultTimeout = 2 * time.Second

// buffer is the size of what gRPC reads and writes at once, in bytes: answers are small, and there are very many
// connections. Its default is eight times that.
const buffer = 4 << 10

// maxIdle is how long a connection is kept that nobody uses: its pod or its cluster is gone.
const maxIdle = time.Minute

// Dialer connects to the client port of the pod with that name. How the bytes travel is its
// business alone: names are not looked up, and TLS is verified from end to end.
type Dialer func(ctx context.Context, pod string) (net.Conn, error)

// Pod is a pod of a cluster. A new UID or address means a new connection.
type Pod struct {
	Name, UID, IP string
	// Unready: Kubernetes has not found it ready.
	Unready bool
	// Gone: the member that was in it is on record as removed. It is asked last: only if etcd lists
	// a member there all the same, or if nobody else gives a list.
	Gone bool
}

// TLS is what a client needs to check the members and to prove itself to them, in PEM. It does not change once it was
// used: what is used next is another one.
type TLS struct {
	CA, Cert []byte
	Key      pki.PrivateKey
	// Now is the clock that certificates are held against; nil stands for this machine's.
	Now func() time.Time

	// read is the same, as it was read for the first member.
	read     sync.Once
	config   *tls.Config
	identity [sha256.Size]byte
	err      error
}

// Cluster says how to reach a cluster.
type Cluster struct {
	Namespace, Name string
	// Pods that are worth asking.
	Pods []Pod
	// TLS is nil if the members serve without.
	TLS  *TLS
	Dial Dialer
	// CompareData: there is reason to compare what the members hold, besides an alarm.
	CompareData bool
	// CompareFrom: the same, once there are so many voters, and no learner; zero: there is not.
	CompareFrom int
	// Patient: who was silent a moment ago has all its time again, since it is about to be taken for lost.
	Patient bool
}

// Clients are the connections to the members of any number of clusters, kept from one pass to the
// next. The zero value is ready for use. Its methods may be called at the same time, for one
// cluster by one caller.
type Clients struct {
	// Timeout of one question to one member; zero means DefaultTimeout.
	Timeout time.Duration
	// Stall is how long a member may send nothing of its snapshot; zero means a minute.
	Stall time.Duration
	// Patience is how long members are asked again that do not prove a snapshot; zero means half a
	// minute.
	Patience time.Duration

	mu   sync.Mutex
	open map[identity]*client
	// silent had all their time and did not answer, and left are those whose member was removed.
	silent, left pods
}

// identity is what makes a connection the same one: another pod or other certificates are another.
type identity struct {
	namespace, cluster string
	pod, uid, ip       string
	tls                [sha256.Size]byte
}

// client is the connection to one member.
type client struct {
	clientv3.Cluster
	clientv3.Maintenance
	auth     etcdserverpb.AuthClient
	conn     *grpc.ClientConn
	dial     atomic.Value // the newest Dialer
	lastUsed time.Time
}

// Close closes all connections. The Clients may be used again.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, client := range c.open {
		client.conn.Close()
		delete(c.open, id)
	}
}

func (c *Clients) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

// impatience is how long a member has for saying how it is whose pod is not ready, or after most
// others have answered: a quarter of what it has otherwise, or half a second if that is more. One
// that is about to start takes connections before it answers anybody, and will be asked again.
func (c *Clients) impatience() time.Duration {
	return max(c.timeout()/4, min(c.timeout(), time.Second/2))
}

// client returns the connection to the pod, and whether it was kept from earlier. A new one is not
// up yet.
func (c *Clients) client(cluster Cluster, pod Pod) (found *client, kept bool, err error) {
	id := identity{cluster.Namespace, cluster.Name, pod.Name, pod.UID, pod.IP, cluster.TLS.digest()}
	c.mu.Lock()
	defer c.mu.Unlock()
	found, kept = c.open[id]
	if !kept {
		if found, err = newClient(cluster, pod.Name); err != nil {
			return nil, false, err
		}
		if c.open == nil {
			c.open = map[identity]*client{}
		}
		c.open[id] = found
	}
	found.dial.Store(cluster.Dial)
	found.lastUsed = time.Now()
	return found, kept, nil
}

// CloseCluster closes the connections to the members of a cluster, which are opened again when they are needed.
func (c *Clients) CloseCluster(namespace, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, client := range c.open {
		if id.namespace == namespace && id.cluster == cluster {
			client.conn.Close()
			delete(c.open, id)
		}
	}
}

// drop closes a connection over which nothing came, so that the next pass tries a new one at once,
// without gRPC's pause between attempts.
func (c *Clients) drop(broken *client) {
	c.closeIf(func(client *client) bool { return client == broken })
}

// dropIdle closes the connections that nobody has used for long.
func (c *Clients) dropIdle() {
	now := time.Now()
	c.closeIf(func(client *client) bool { return now.Sub(client.lastUsed) > maxIdle })
}

func (c *Clients) closeIf(unwanted func(*client) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, client := range c.open {
		if unwanted(client) {
			client.conn.Close()
			delete(c.open, id)
		}
	}
}

func newClient(cluster Cluster, pod string) (*client, error) {
	host := fmt.Sprintf("%s.%s.%s.svc", pod, cluster.Name, cluster.Namespace)
	transport, err := cluster.TLS.transport(host)
	if err != nil {
		return nil, err
	}
	c := &client{}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		var conn net.Conn
		err := panics.Catch(func() (err error) { // it runs in a goroutine of gRPC's
			conn, err = c.dial.Load().(Dialer)(ctx, pod)
			return err
		})
		return conn, plain(err)
	}
	// The passthrough scheme looks nothing up.
	c.conn, err = grpc.NewClient("passthrough:///"+net.JoinHostPort(host, "2379"),
		grpc.WithContextDialer(dial), grpc.WithTransportCredentials(transport), grpc.WithUnaryInterceptor(checked),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer))
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", host, err)
	}
	c.Cluster = clientv3.NewClusterFromClusterClient(etcdserverpb.NewClusterClient(c.conn), nil)
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(etcdserverpb.NewMaintenanceClient(c.conn), nil)
	c.auth = etcdserverpb.NewAuthClient(c.conn)
	return c, nil
}

// digest tells it from others.
func (t *TLS) digest() [sha256.Size]byte {
	if t == nil {
		return [sha256.Size]byte{}
	}
	t.read.Do(t.parse)
	return t.identity
}

// transport returns the credentials for a member that must prove to be the host.
func (t *TLS) transport(host string) (credentials.TransportCredentials, error) {
	if t == nil {
		return insecure.NewCredentials(), nil
	}
	t.read.Do(t.parse)
	if t.err != nil {
		return nil, t.err
	}
	config := t.config.Clone()
	config.ServerName = host
	return credentials.NewTLS(config), nil
}

// parse reads what is the same for all members.
func (t *TLS) parse() {
	ca, cert, key := sha256.Sum256(t.CA), sha256.Sum256(t.Cert), sha256.Sum256(t.Key)
	t.identity = sha256.Sum256(append(append(ca[:], cert[:]...), key[:]...))
	if t.err = t.check(); t.err != nil {
		return
	}
	roots, err := readRoots(t.CA)
	if err != nil {
		t.err = err
		return
	}
	pair, err := tls.X509KeyPair(t.Cert, t.Key)
	if signer, is := pair.PrivateKey.(crypto.Signer); is {
		err = checkRSA(signer.Public())
	}
	if err != nil {
		t.err = fmt.Errorf("client certificate: %w", err)
		return
	}
	t.config = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		Time: t.Now}
}

// readRoots reads the certificates of CAs, and passes over what is none, as crypto/x509 does.
func readRoots(text []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the CA holds no certificate in PEM")
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if err := checkRSA(root.PublicKey); err != nil {
			return nil, fmt.Errorf("the CA: %w", err)
		}
	}
	return roots, nil
}

// checkRSA refuses a key with which it takes seconds to sign, or to verify what was signed. Of those who answer,
// crypto/tls takes none of more bits either.
func checkRSA(public crypto.PublicKey) error {
	const most = 8192
	if key, is := public.(*rsa.PublicKey); is && key.N.BitLen() > most {
		return fmt.Errorf("its RSA key has %d bits, more than %d", key.N.BitLen(), most)
	}
	return nil
}

// check says what is too long to be read; whoever can write the Secret decides how long that is.
func (t *TLS) check() error {
	for _, part := range []struct {
		name string
		text []byte
	}{{"ca.crt", t.CA}, {"tls.crt", t.Cert}, {"tls.key", t.Key}} {
		if err := pki.CheckLength(part.text); err != nil {
			return fmt.Errorf("the client's %s: %w", part.name, err)
		}
	}
	if len(t.Key) > pki.MaxKey {
		return fmt.Errorf("the client's tls.key: it is longer than %d KiB", pki.MaxKey>>10)
	}
	return nil
}
