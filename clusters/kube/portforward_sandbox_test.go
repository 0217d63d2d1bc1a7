package kube_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/pki"
)

// sandboxKubeconfig is the environment variable that contains the path of a test cluster's kubeconfig.
const sandboxKubeconfig = "QUORATE_SANDBOX_KUBECONFIG"

// TestPortForwardToEtcd queries a real etcd in a real pod, with end-to-end TLS.
func TestPortForwardToEtcd(t *testing.T) {
	p := newEtcdPod(t)
	p.create()
	answer := p.eventually("known", func(a etcd.Answer) bool { return a.Membership.Known })
	m := answer.Membership.Members[0]
	if !m.Answers || !m.Leader || m.Name != "a-0" || answer.ClusterIDs["a-0"] != answer.Membership.ClusterID {
		t.Errorf("got %+v", answer)
	}

	stranger := p.cluster()
	stranger.TLS = &etcd.TLS{CA: p.issue(pki.Leaf{CommonName: "stranger"}).CA, Cert: p.tls.Cert, Key: p.tls.Key}
	if m := p.clients.Observe(t.Context(), stranger).Membership; m.Known || !strings.Contains(m.Why, "unknown authority") {
		t.Errorf("a CA that the member is not from: %+v", m)
	}
	nobody := p.cluster()
	nobody.Dial = func(ctx context.Context, pod string) (net.Conn, error) {
		return p.client.PortForward(ctx, p.namespace, pod, 2390)
	}
	nobody.Pods[0].UID = "of another"
	if m := p.clients.Observe(t.Context(), nobody).Membership; m.Known || m.Why != "a-0: connection refused" {
		t.Errorf("a port without a listener: %+v", m)
	}
	absent := p.cluster()
	absent.Pods[0].Name = "a-1"
	if m := p.clients.Observe(t.Context(), absent).Membership; m.Known || !strings.Contains(m.Why, `pods "a-1" not found`) {
		t.Errorf("no such pod: %+v", m)
	}

	p.delete()
	p.eventually("unknown", func(a etcd.Answer) bool { return !a.Membership.Known }) // etcd ends after the pod
	p.create()
	p.eventually("known again", func(a etcd.Answer) bool { return a.Membership.Known })
	p.clients.Close()
	checkNoneRuns(t)
}

func BenchmarkPortForward(b *testing.B) {
	p := newEtcdPod(b)
	p.create()
	p.eventually("known", func(a etcd.Answer) bool { return a.Membership.Known })
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			p.clients.Observe(b.Context(), p.cluster())
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			p.clients.Close()
			p.clients.Observe(b.Context(), p.cluster())
		}
	})
}

// etcdPod is a pod a-0 with its own etcd member, in its own namespace.
type etcdPod struct {
	testing.TB
	typed     kubernetes.Interface
	client    *kube.Client
	clients   etcd.Clients
	namespace string
	uid       string
	tls       *etcd.TLS
}

func newEtcdPod(t testing.TB) *etcdPod {
	path := os.Getenv(sandboxKubeconfig)
	if path == "" {
		t.Skipf("%s names no kubeconfig of a sandbox", sandboxKubeconfig)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	p := &etcdPod{TB: t, typed: kubernetes.NewForConfigOrDie(config)}
	p.client, err = kube.New(config)
	must(t, err)
	namespace, err := p.typed.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "port-forward-"}}, metav1.CreateOptions{})
	must(t, err)
	p.namespace = namespace.Name
	t.Cleanup(func() {
		p.clients.Close()
		_ = p.typed.CoreV1().Namespaces().Delete(context.Background(), p.namespace, metav1.DeleteOptions{})
	})
	p.tls = p.issue(pki.Leaf{CommonName: "a", DNSNames: []string{"*.a." + p.namespace + ".svc"}})
	_, err = p.typed.CoreV1().Secrets(p.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "tls"},
		Data:       map[string][]byte{"ca.crt": p.tls.CA, "tls.crt": p.tls.Cert, "tls.key": p.tls.Key},
	}, metav1.CreateOptions{})
	must(t, err)
	return p
}

// issue creates a certificate signed by a new CA.
func (p *etcdPod) issue(leaf pki.Leaf) *etcd.TLS {
	now := time.Now()
	leaf.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	ca, err := pki.NewCA("a", p.namespace, now)
	must(p, err)
	pair, err := ca.Issue(leaf, now)
	must(p, err)
	return &etcd.TLS{CA: ca.Pair().Certificate, Cert: pair.Certificate, Key: pair.Key}
}

func (p *etcdPod) create() {
	const tls = "/tls/"
	url := fmt.Sprintf("https://a-0.a.%s.svc:2379", p.namespace)
	zero := int64(0)
	pod, err := p.typed.CoreV1().Pods(p.namespace).Create(p.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a-0"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &zero,
			Volumes:                       []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}}},
			Containers: []corev1.Container{{
				Name: "etcd", Image: "gcr.io/etcd-development/etcd:v3.6.16", ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{
					"etcd", "--name=a-0", "--data-dir=/tmp/data", "--client-cert-auth", "--trusted-ca-file=" + tls + "ca.crt",
					"--cert-file=" + tls + "tls.crt", "--key-file=" + tls + "tls.key",
					"--listen-client-urls=https://0.0.0.0:2379", "--advertise-client-urls=" + url,
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: tls, ReadOnly: true}},
			}},
		},
	}, metav1.CreateOptions{})
	must(p, err)
	p.uid = string(pod.UID)
}

// delete deletes the pod and waits until it is gone.
func (p *etcdPod) delete() {
	pods := p.typed.CoreV1().Pods(p.namespace)
	must(p, pods.Delete(p.Context(), "a-0", metav1.DeleteOptions{}))
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		if _, err := pods.Get(p.Context(), "a-0", metav1.GetOptions{}); err != nil {
			return
		}
		if time.Now().After(end) {
			p.Fatal("the pod does not go")
		}
	}
}

func (p *etcdPod) cluster() etcd.Cluster {
	return etcd.Cluster{
		Namespace: p.namespace, Name: "a", Pods: []etcd.Pod{{Name: "a-0", UID: p.uid}}, TLS: p.tls,
		Dial: func(ctx context.Context, pod string) (net.Conn, error) {
			return p.client.PortForward(ctx, p.namespace, pod, 2379)
		},
	}
}

func (p *etcdPod) eventually(wanted string, is func(etcd.Answer) bool) etcd.Answer {
	p.Helper()
	var answer etcd.Answer
	said := ""
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if answer = p.clients.Observe(p.Context(), p.cluster()); is(answer) {
			return answer
		}
		if why := answer.Membership.Why; why != said {
			said = why
			p.Logf("not yet %s: %s", wanted, why)
		}
	}
	p.Fatalf("it does not become %s: %+v", wanted, answer)
	return answer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
