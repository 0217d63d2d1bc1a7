package objects

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/v1alpha1"
)

const manager = "quorate-test"

// TestNoDriftAfterApply applies the objects of every golden file to a real API server: what it gives back must not read as drift, and
// applying it again must change nothing. QUORATE_KUBE_APISERVER names the program, QUORATE_ETCD_DIR has an etcd for it.
func TestNoDriftAfterApply(t *testing.T) {
	config := apiServer(t)
	files, err := filepath.Glob("../../testdata/objects/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range append(files, files...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			// What comes back differs between the encodings.
			encoded := rest.CopyConfig(config)
			encoded.ContentType = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}[i/len(files)]
			client := kubernetes.NewForConfigOrDie(encoded)
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string][]byte{}
			for _, f := range archive.Files {
				sections[f.Name] = f.Data
			}
			in := goldenInput(t, sections)
			in.Cluster.Namespace = fmt.Sprintf("test-%d", i)
			if _, err := client.CoreV1().Namespaces().Apply(t.Context(), restricted(in.Cluster.Namespace), force); err != nil {
				t.Fatal(err)
			}
			applyTwice(t, client, in)
			changeAndApply(t, client, in)
			noticeStrangers(t, client, in)
			createPod(t, client, in)
		})
	}
}

var force = metav1.ApplyOptions{FieldManager: manager, Force: true}

func applyTwice(t *testing.T, client kubernetes.Interface, in Input) {
	t.Helper()
	list := build(t, in)
	for _, o := range list {
		first, live := applyObject(t, client, in.Cluster.Namespace, o.Apply)
		if paths, err := Differences(o.Apply, live); err != nil || len(paths) > 0 {
			t.Errorf("%s drifts at once: %v %v", o, paths, err)
		}
		if second, _ := applyObject(t, client, in.Cluster.Namespace, o.Apply); second != first {
			t.Errorf("%s is changed by applying it again", o)
		}
	}
}

// changeAndApply changes what may change in a live cluster, in and out of lists.
func changeAndApply(t *testing.T, client kubernetes.Interface, in Input) {
	t.Helper()
	changed := in
	changed.Cluster = in.Cluster.DeepCopy()
	pod := &changed.Cluster.Spec.Pod
	pod.Resources.Requests = map[string]resource.Quantity{"cpu": quantity("0.0005"), "memory": quantity("1.5Gi"), "ephemeral-storage": quantity("1e3")}
	pod.Resources.Limits = nil
	pod.Tolerations = []v1alpha1.Toleration{{Operator: "Exists"}}
	zone := v1alpha1.TopologySpreadConstraint{MaxSkew: 2, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "ScheduleAnyway"}
	host := v1alpha1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: "DoNotSchedule"}
	pod.TopologySpreadConstraints = []v1alpha1.TopologySpreadConstraint{host, zone}
	pod.Affinity, pod.NodeSelector, pod.PriorityClassName = nil, nil, ""
	changed.Cluster.Spec.Image.PullSecrets = []v1alpha1.SecretReference{{Name: "z"}, {Name: "b"}}
	applyTwice(t, client, changed)
	slices.Reverse(pod.TopologySpreadConstraints)
	slices.Reverse(changed.Cluster.Spec.Image.PullSecrets)
	applyTwice(t, client, changed)
	applyTwice(t, client, in)
}

// noticeStrangers lets another manager change the number of replicas, which must read as drift.
func noticeStrangers(t *testing.T, client kubernetes.Interface, in Input) {
	t.Helper()
	sets := client.AppsV1().StatefulSets(in.Cluster.Namespace)
	if _, err := sets.Patch(t.Context(), in.Cluster.Name, types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "stranger"}); err != nil {
		t.Fatal(err)
	}
	live, err := sets.Get(t.Context(), in.Cluster.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	extracted, err := applyappsv1.ExtractStatefulSet(live, manager)
	if err != nil {
		t.Fatal(err)
	}
	want, err := statefulSet(in)
	if err != nil {
		t.Fatal(err)
	}
	if paths, err := Differences(want, extracted); err != nil || !slices.Equal(paths, []string{"spec.replicas"}) {
		t.Errorf("differences %v, %v", paths, err)
	}
}

// restricted is a namespace that takes only pods of the restricted Pod Security Standard.
func restricted(name string) *applycorev1.NamespaceApplyConfiguration {
	return applycorev1.Namespace(name).WithLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
}

// createPod makes a pod as the StatefulSet would, for the API server to refuse or not.
func createPod(t *testing.T, client kubernetes.Interface, in Input) {
	t.Helper()
	namespace := in.Cluster.Namespace
	if _, err := client.CoreV1().ServiceAccounts(namespace).Apply(t.Context(), applycorev1.ServiceAccount("default", namespace), force); err != nil {
		t.Fatal(err)
	}
	set, err := client.AppsV1().StatefulSets(namespace).Get(t.Context(), in.Cluster.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name = PodName(in.Cluster.Name, 0)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeData, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: VolumeClaimName(in.Cluster.Name, 0)},
	}})
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a pod of the StatefulSet: %v", err)
	}
}

// applyObject returns the resource version of the live object, and what is extracted from it.
func applyObject(t *testing.T, client kubernetes.Interface, namespace string, object any) (string, any) {
	t.Helper()
	var live metav1.Object
	var extracted any
	var err, extractErr error
	switch o := object.(type) {
	case *applycorev1.ConfigMapApplyConfiguration:
		x, e := client.CoreV1().ConfigMaps(namespace).Apply(t.Context(), o, force)
		live, err = x, e
		extracted, extractErr = applycorev1.ExtractConfigMap(x, manager)
	case *applycorev1.SecretApplyConfiguration:
		x, e := client.CoreV1().Secrets(namespace).Apply(t.Context(), o, force)
		live, err = x, e
		extracted, extractErr = applycorev1.ExtractSecret(x, manager)
	case *applycorev1.ServiceApplyConfiguration:
		x, e := client.CoreV1().Services(namespace).Apply(t.Context(), o, force)
		live, err = x, e
		extracted, extractErr = applycorev1.ExtractService(x, manager)
	case *applypolicyv1.PodDisruptionBudgetApplyConfiguration:
		x, e := client.PolicyV1().PodDisruptionBudgets(namespace).Apply(t.Context(), o, force)
		live, err = x, e
		extracted, extractErr = applypolicyv1.ExtractPodDisruptionBudget(x, manager)
	case *applyappsv1.StatefulSetApplyConfiguration:
		x, e := client.AppsV1().StatefulSets(namespace).Apply(t.Context(), o, force)
		live, err = x, e
		extracted, extractErr = applyappsv1.ExtractStatefulSet(x, manager)
	default:
		t.Fatalf("no way to apply a %T", object)
	}
	if err != nil || extractErr != nil {
		t.Fatalf("apply %T: %v, %v", object, err, extractErr)
	}
	return live.GetResourceVersion(), extracted
}

// apiServer starts an API server and its etcd, and returns how to reach it once it is ready.
func apiServer(t *testing.T) *rest.Config {
	program := os.Getenv("QUORATE_KUBE_APISERVER")
	if program == "" {
		t.Skip("QUORATE_KUBE_APISERVER is not set")
	}
	dir := t.TempDir()
	etcd := slices.Max(slices.Collect(maps.Values(etcdBinaries(t))))
	clientURL, peerURL := "http://"+freeAddress(t), "http://"+freeAddress(t)
	run(t, dir, etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL)
	key := serviceAccountKey(t, dir)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(`secret,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	exited := run(t, dir, program, "--etcd-servers="+clientURL, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+dir, "--token-auth-file="+tokens,
		"--service-account-issuer=https://test", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=RBAC")
	config := &rest.Config{Host: "https://" + address, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return config
		}
		select {
		case <-exited:
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
			continue
		}
		log, _ := os.ReadFile(filepath.Join(dir, filepath.Base(program)+".log"))
		t.Fatalf("the API server does not get ready: %v\n%s", err, log)
	}
}

// run starts a program, which ends with the test at the latest. The channel is closed when it ends.
func run(t *testing.T, dir, program string, args ...string) <-chan struct{} {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	process := exec.Command(program, args...)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = process.Wait(); close(exited) }()
	t.Cleanup(func() { _ = process.Process.Kill(); <-exited })
	return exited
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func serviceAccountKey(t *testing.T, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "service-account.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
