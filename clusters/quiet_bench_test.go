package clusters

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/etcd/etcdtest"
	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/procgroup"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// BenchmarkQuietPass observes a large number of up-to-date clusters of three members. The API server and the etcd
// members run in a different process, so that only the pass is measured and profiled. QUORATE_FLEET sets the number of
// clusters (default 100).
func BenchmarkQuietPass(b *testing.B) {
	f := fleetApart(b, fleetSize(b, 100))
	measured(b, func() { f.pass(shard.Shard{}) })
}

// BenchmarkQuietFloor measures only the requests that every pass must send: the LISTs, the status of each member, and
// a member list for each cluster.
func BenchmarkQuietFloor(b *testing.B) {
	f := fleetApart(b, fleetSize(b, 100))
	measured(b, f.floor)
}

// BenchmarkQuietFigures prints the figures of both benchmarks, and of a pass over one of four shards. QUORATE_FLEET
// sets the number of clusters (default 1,000).
func BenchmarkQuietFigures(b *testing.B) {
	const usual = 1000
	n := fleetSize(b, usual)
	whole := ""
	if n == usual {
		whole = "_pass" // the figure without this suffix is from another benchmark, with a real API server
	}
	f := fleetApart(b, n)
	for b.Loop() {
		pass := costOf(b, func() { f.pass(shard.Shard{}) })
		floor := costOf(b, f.floor)
		part := costOf(b, func() { f.pass(shard.Shard{Index: 0, Of: 4}) })
		for _, of := range []struct {
			what string
			cost
		}{{whole, pass}, {"_floor", floor}, {"_shard_of_4", part}} {
			figure := fmt.Sprintf("figure fleet_%d_quiet%s", n, of.what)
			fmt.Fprintf(os.Stdout, "%s_seconds %.3g s\n", figure, of.took.Seconds())
			fmt.Fprintf(os.Stdout, "%s_cpu_seconds %.3g s\n", figure, of.cpu.Seconds())
			fmt.Fprintf(os.Stdout, "%s_memory %.3g MiB\n", figure, of.mebibytes())
		}
		fmt.Fprintf(os.Stdout, "figure fleet_%d_quiet_floor_ratio %.3g x\n", n, pass.took.Seconds()/floor.took.Seconds())
		fmt.Fprintf(os.Stdout, "figure fleet_%d_quiet_floor_cpu_ratio %.3g x\n", n, pass.cpu.Seconds()/floor.cpu.Seconds())
	}
}

// measured calls run as often as the benchmark requires. It also reports the processor time and memory used.
func measured(b *testing.B, run func()) {
	b.ReportAllocs()
	var all cost
	for b.Loop() {
		one := costOf(b, run)
		all.cpu, all.peak = all.cpu+one.cpu, max(all.peak, one.peak)
	}
	b.ReportMetric(all.cpu.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(all.mebibytes(), "peak-MiB")
}

// cost is the resource usage of this process during a run.
type cost struct {
	took, cpu time.Duration
	// peak is the peak resident set size in bytes, or 0 if the system does not report it.
	peak int64
}

func (c cost) mebibytes() float64 { return float64(c.peak) / (1 << 20) }

func costOf(b *testing.B, run func()) (c cost) {
	b.Helper()
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(GCPercent))
	}
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets the peak, if the system reports it
	used, began := processorTime(b), time.Now()
	run()
	c.took, c.cpu = time.Since(began), processorTime(b)-used
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if found := peak.FindSubmatch(status); found != nil {
			kibibytes, err := strconv.ParseInt(string(found[1]), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			c.peak = kibibytes << 10
		}
	}
	return c
}

var peak = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// pass observes all clusters, or those of a shard. It checks that nothing is left to do, and that every request is a
// LIST, one for each kind and page.
func (f *quietFleet) pass(part shard.Shard) {
	f.Helper()
	f.asked.Store(0)
	live := New(f.client, Options{Timeout: time.Minute, Shard: part})
	rep := (&reconcile.Reconciler{Source: f, Live: live, Log: slog.New(slog.DiscardHandler), Plan: true}).Pass(f.Context())
	for _, c := range rep.Clusters {
		if c.Error != "" || c.Decision.Rule != decide.Converged {
			f.Fatalf("%s: %s %s", c.Key(), c.Error, c.Decision)
		}
	}
	f.check(live.Close(context.Background()))
	const kinds, each = 12, 18 // the number of kinds, and of objects per cluster
	asked, most := int(f.asked.Load()), kinds+each*len(f.desired.Clusters)/500
	if len(rep.Clusters) == 0 || asked > most || f.otherwise.Load() > 0 {
		f.Fatalf("%d clusters required %d requests, want at most %d; %d of them are not LISTs", len(rep.Clusters), asked, most, f.otherwise.Load())
	}
}

// floor lists all objects, and asks all members.
func (f *quietFleet) floor() {
	f.Helper()
	sorter := inventory.NewSorter(inventory.AnyCluster)
	_, err := f.client.List(f.Context(), "", objects.Managed, sorter)
	f.check(err)
	var group errgroup.Group
	group.SetLimit(16)
	for key, listed := range sorter.Listed() {
		group.Go(func() error {
			own, err := listed.Open()
			if err != nil {
				return err
			}
			return f.floorOf(f.Context(), key, own)
		})
	}
	f.check(group.Wait())
}

// asksFor is the environment variable that makes the test binary serve a fleet. Its value is the number of clusters.
const asksFor = "QUORATE_TEST_FLEET"

// fleetApart returns a fleet that a different process serves. This process has only the declarations.
func fleetApart(b *testing.B, clusters int) *quietFleet {
	b.Helper()
	f := declaredFleet(b, clusters)
	command := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestAnswers$", "-test.timeout=0")
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asksFor, clusters))
	command.SysProcAttr, command.Stderr = procgroup.WithParent(), os.Stderr
	said, err := command.StdoutPipe()
	f.check(err)
	ends, err := command.StdinPipe()
	f.check(err)
	f.check(command.Start())
	b.Cleanup(func() {
		_ = ends.Close()
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if host, is := strings.CutPrefix(lines.Text(), "answers at "); is {
			f.reach(&rest.Config{Host: host})
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return f
		}
	}
	b.Fatal("no process responds for the fleet")
	return nil
}

// TestAnswers serves a fleet for as long as a benchmark in a different process needs it.
func TestAnswers(t *testing.T) {
	clusters, err := strconv.Atoi(os.Getenv(asksFor))
	if err != nil {
		t.Skip("no benchmark has started this process")
	}
	f := newQuietFleet(t, clusters)
	f.encode()
	fmt.Fprintln(os.Stdout, "answers at "+f.host)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// encode encodes all pages in advance, because encoding takes longer than sending, and keeps only the encoded pages.
func (f *quietFleet) encode() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for resource, all := range f.lists {
		for from := 0; from < len(all); from += 500 {
			f.pages[fmt.Sprint(resource, from)] = f.page(resource, from, 500)
		}
	}
	clear(f.lists)
	debug.FreeOSMemory()
}

// floorOf asks the members of one cluster.
func (f *quietFleet) floorOf(ctx context.Context, key inventory.Key, own *inventory.Cluster) error {
	secret := own.Secrets()[objects.NamesOf(key.Name).OwnSecret]
	pair, err := tls.X509KeyPair(secret["tls.crt"], secret["tls.key"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret["ca.crt"])
	var members errgroup.Group
	for i, pod := range own.Pods {
		members.Go(func() error {
			config := &tls.Config{ServerName: f.member(key.Namespace, key.Name, i), Certificates: []tls.Certificate{pair},
				RootCAs: roots, MinVersion: tls.VersionTLS12}
			conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(objects.ClientPort)),
				grpc.WithTransportCredentials(credentials.NewTLS(config)))
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{}); err != nil {
				return err
			}
			_, err = etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{})
			return err
		})
	}
	return members.Wait()
}

// BenchmarkListed reports the amount of memory that a listing keeps.
func BenchmarkListed(b *testing.B) {
	f := fleetApart(b, fleetSize(b, 100))
	b.ReportAllocs()
	for b.Loop() {
		live, before := New(f.client, Options{}), heap()
		observed, err := live.Observe(b.Context(), f.desired, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/float64(len(f.desired.Clusters)), "kept-B/cluster")
		runtime.KeepAlive(observed)
	}
}

func fleetSize(b *testing.B, otherwise int) int {
	said := os.Getenv("QUORATE_FLEET")
	if said == "" {
		return otherwise
	}
	n, err := strconv.Atoi(said)
	if err != nil {
		b.Fatalf("QUORATE_FLEET: %v", err)
	}
	return n
}

// heap returns the heap memory in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// quietFleet is an API server with the objects of a large number of clusters, and their etcd members.
type quietFleet struct {
	testing.TB
	// host is the address of the API server, and client is a client for it.
	host   string
	client *kube.Client
	// asked counts all requests, and otherwise counts the requests that are not LISTs.
	asked, otherwise atomic.Int64
	desired          reconcile.Desired
	// lists contains the objects by resource.
	lists   map[string][]k8sruntime.Object
	address string
	// ahead is the time by which the clocks of the API server and of all members are ahead of this machine's clock.
	ahead time.Duration

	mu sync.Mutex
	// pages are the encoded pages of the lists.
	pages map[string][]byte
	// hosts are the members' TLS configurations, by the name to which clients connect.
	hosts map[string]*tls.Config
}

// Fetch implements reconcile.Source.
func (f *quietFleet) Fetch(context.Context, func(reconcile.Desired)) reconcile.Desired {
	return f.desired
}

func (f *quietFleet) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	known(f.desired)
	<-ctx.Done()
}

func newQuietFleet(b testing.TB, clusters int) *quietFleet { return newFleetAhead(b, clusters, 0) }

func newFleetAhead(b testing.TB, clusters int, ahead time.Duration) *quietFleet {
	f := declaredFleet(b, clusters)
	f.ahead, f.lists, f.pages, f.hosts = ahead, map[string][]k8sruntime.Object{}, map[string][]byte{}, map[string]*tls.Config{}
	f.address = etcdtest.Subnet(b) + ".1"
	for i := range f.desired.Clusters {
		f.add(&f.desired.Clusters[i])
	}
	f.serveEtcd()
	f.reach(kubetest.Answering(b, f.list))
	return f
}

// declaredFleet returns a fleet of declarations only, without objects or servers.
func declaredFleet(b testing.TB, clusters int) *quietFleet {
	f := &quietFleet{TB: b}
	f.desired.Sources = []reconcile.SourceState{{Name: "git", Revision: "main@sha1:1"}}
	for n := range clusters {
		f.declare(fmt.Sprint("ns-", n%20), fmt.Sprintf("c%05d", n))
	}
	return f
}

// reach sets the fleet's client, which counts requests.
func (f *quietFleet) reach(config *rest.Config) {
	client, err := kube.New(kube.Counted(config, func(verb string, _ int) {
		f.asked.Add(1)
		if verb != "list" {
			f.otherwise.Add(1)
		}
	}))
	f.check(err)
	f.host, f.client = config.Host, client
}

// add adds an up-to-date cluster.
func (f *quietFleet) add(declared *reconcile.Declaration) {
	c := declared.Cluster.DeepCopy()
	namespace, name := c.Namespace, c.Name
	c.UID = types.UID("uid-of-" + name)
	c.Labels = objects.Labels(name)
	c.Status.ClusterID = "c1"
	record := decide.FoundingRecord("f00d", 3)
	record.ClusterID = fakeClusterID
	peers := map[string][]string{}
	for i := range record.Members {
		m := &record.Members[i]
		m.Mode, m.ID, m.VolumeUID = decide.Sealed, decide.ID(i+1), fmt.Sprint("volume-", i)
		peers[objects.PodName(name, i)] = []string{f.peer(namespace, name, i)}
	}
	certificates, err := objects.NewCertificates(c, f.now().Add(-time.Hour))
	f.check(err)
	record.CA = pki.Fingerprint(certificates.CA.Certificate)
	built, err := objects.Build(objects.Input{Cluster: c, Record: record, Voters: 3, Peers: peers, Certificates: certificates, Leads: true})
	f.check(err)
	for _, o := range built {
		version := "v1"
		switch o.Kind {
		case "StatefulSet":
			version = "apps/v1"
		case "PodDisruptionBudget":
			version = "policy/v1"
		}
		f.put(f.live(o, version))
	}
	f.addCustom(c, declared.Applied)
	f.put(&coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: objects.Labels(name)}})
	f.addPods(c, record, certificates)
}

// declare declares a minimal cluster.
func (f *quietFleet) declare(namespace, name string) {
	text := fmt.Sprintf("apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: %s, namespace: %s}\n"+
		"spec: {version: 3.6.16, replicas: 3}\n", name, namespace)
	var applied, defaulted map[string]any
	for _, object := range []*map[string]any{&applied, &defaulted} {
		f.check(yaml.UnmarshalStrict([]byte(text), object))
	}
	f.check(schema.Default(defaulted))
	f.desired.Clusters = append(f.desired.Clusters, reconcile.Declaration{Applied: applied, Source: "git", Revision: "main@sha1:1"})
	d := &f.desired.Clusters[len(f.desired.Clusters)-1]
	f.check(k8sruntime.DefaultUnstructuredConverter.FromUnstructured(defaulted, &d.Cluster))
}

func (f *quietFleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *quietFleet) peer(namespace, name string, ordinal int) string {
	return fmt.Sprintf("https://%s.%s.%s.svc:2380", objects.PodName(name, ordinal), name, namespace)
}

func (f *quietFleet) member(namespace, name string, ordinal int) string {
	return fmt.Sprintf("%s.%s.%s.svc", objects.PodName(name, ordinal), name, namespace)
}

// now returns the time on the clocks of the API server and of all members.
func (f *quietFleet) now() time.Time { return time.Now().Add(f.ahead) }

// put stores a live object under its resource.
func (f *quietFleet) put(object k8sruntime.Object) {
	resource, _ := meta.UnsafeGuessKindToResource(object.GetObjectKind().GroupVersionKind())
	f.lists[resource.Resource] = append(f.lists[resource.Resource], object)
}

// live returns an object as the API server stores it after apply, with the fields that two managers own.
func (f *quietFleet) live(o objects.Object, version string) k8sruntime.Object {
	body, err := json.Marshal(o.Apply)
	f.check(err)
	object, err := k8sruntime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	f.check(err)
	value, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(object)
	f.check(err)
	owned, err := value.ToFieldSet()
	f.check(err)
	for _, path := range [][]any{{"apiVersion"}, {"kind"}, {"status"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		owned = owned.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie(path...)))
	}
	text, err := owned.ToJSON()
	f.check(err)
	accessor, err := meta.Accessor(object)
	f.check(err)
	entry := metav1.ManagedFieldsEntry{Manager: kube.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text))}
	other := entry
	other.Manager, other.Operation = "kube-controller-manager", metav1.ManagedFieldsOperationUpdate
	accessor.SetManagedFields([]metav1.ManagedFieldsEntry{entry, other})
	accessor.SetUID(types.UID("uid-of-" + o.Kind + accessor.GetName()))
	accessor.SetResourceVersion("7")
	return object
}

// addCustom adds the custom resource of a cluster.
func (f *quietFleet) addCustom(c *v1alpha1.EtcdCluster, applied map[string]any) {
	object := targets.Target{Cluster: *c, Applied: applied}.Declaration()
	metadata := object["metadata"].(map[string]any)
	metadata["uid"], metadata["resourceVersion"], metadata["generation"] = string(c.UID), "7", int64(1)
	object["spec"], _ = k8sruntime.DefaultUnstructuredConverter.ToUnstructured(&c.Spec)
	object["status"] = map[string]any{"clusterID": "c1", "declaredSource": "git", "declaredRevision": "main@sha1:1", "sourceRevision": "main@sha1:1"}
	f.put(&unstructured.Unstructured{Object: object})
}

// addPods adds the pods and volumes of a cluster whose other objects exist, and an etcd member for each pod.
func (f *quietFleet) addPods(c *v1alpha1.EtcdCluster, record decide.Record, certificates objects.Certificates) {
	all := f.lists["statefulsets"]
	set := all[len(all)-1].(*appsv1.StatefulSet)
	for _, m := range record.Members {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Name, pod.Namespace, pod.UID = objects.PodName(c.Name, m.Ordinal), c.Namespace, types.UID(fmt.Sprint(c.Name, "-pod-", m.Ordinal))
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: f.address, StartTime: &metav1.Time{Time: f.now()},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: objects.Container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		f.put(pod)
		template := set.Spec.VolumeClaimTemplates[0]
		claim := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		claim.Name, claim.Namespace, claim.UID = objects.VolumeClaimPrefix+pod.Name, c.Namespace, types.UID(m.VolumeUID)
		claim.Labels = objects.Labels(c.Name)
		claim.Status.Phase, claim.Spec.VolumeName = corev1.ClaimBound, "pv-"+claim.Name
		claim.Status.Capacity = claim.Spec.Resources.Requests
		f.put(claim)
		config, err := serving(certificates)
		f.check(err)
		config.Time = f.now
		f.hosts[f.member(c.Namespace, c.Name, m.Ordinal)] = config
	}
}

func serving(k objects.Certificates) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(k.Server.Certificate, k.Server.Key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.CA.Certificate)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}, err
}

// list responds to a LIST as the API server does, page by page.
func (f *quietFleet) list(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", f.now().UTC().Format(http.TimeFormat))
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	if resource == "etcdclusters" {
		w.Header().Set("Content-Type", "application/json")
	}
	f.mu.Lock()
	key := fmt.Sprint(resource, from)
	if f.pages[key] == nil {
		f.pages[key] = f.page(resource, from, size)
	}
	page := f.pages[key]
	f.mu.Unlock()
	_, _ = w.Write(page)
}

func (f *quietFleet) page(resource string, from, size int) []byte {
	all := f.lists[resource]
	var next string
	if size > 0 && from+size < len(all) {
		next = strconv.Itoa(from + size)
		all = all[:from+size]
	}
	all = all[from:]
	if resource == "etcdclusters" {
		body, err := json.Marshal(map[string]any{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdClusterList", "metadata": map[string]any{"continue": next}, "items": all})
		f.check(err)
		return body
	}
	kinds := map[string]k8sruntime.Object{
		"leases": &coordinationv1.LeaseList{}, "services": &corev1.ServiceList{}, "configmaps": &corev1.ConfigMapList{}, "secrets": &corev1.SecretList{},
		"pods": &corev1.PodList{}, "persistentvolumeclaims": &corev1.PersistentVolumeClaimList{}, "statefulsets": &appsv1.StatefulSetList{},
		"poddisruptionbudgets": &policyv1.PodDisruptionBudgetList{}, "networkpolicies": &networkingv1.NetworkPolicyList{},
		"cronjobs": &batchv1.CronJobList{}, "jobs": &batchv1.JobList{}, "nodes": &corev1.NodeList{}}
	list, known := kinds[resource]
	if !known {
		f.Errorf("asked for %s", resource)
		return []byte{}
	}
	f.check(meta.SetList(list, all))
	accessor, err := meta.ListAccessor(list)
	f.check(err)
	accessor.SetContinue(next)
	kind, _, err := scheme.Scheme.ObjectKinds(list)
	f.check(err)
	info, _ := k8sruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), k8sruntime.ContentTypeProtobuf)
	body, err := k8sruntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, kind[0].GroupVersion()), list)
	f.check(err)
	return body
}

// serveEtcd responds for all members.
func (f *quietFleet) serveEtcd() {
	listener, err := net.Listen("tcp", net.JoinHostPort(f.address, strconv.Itoa(objects.ClientPort)))
	if err != nil {
		f.Skipf("no loopback address to listen on: %v", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return f.hosts[hello.ServerName], nil
	}}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	etcdserverpb.RegisterClusterServer(server, quietMember{fleet: f})
	etcdserverpb.RegisterMaintenanceServer(server, quietMember{fleet: f})
	go func() { _ = server.Serve(listener) }()
	f.Cleanup(server.Stop)
}

// quietMember responds as the member to which the TLS connection is addressed.
type quietMember struct {
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer
	fleet *quietFleet
}

func (m quietMember) asked(ctx context.Context) (pod, name, namespace string, header *etcdserverpb.ResponseHeader) {
	from, _ := peer.FromContext(ctx)
	parts := strings.Split(from.AuthInfo.(credentials.TLSInfo).State.ServerName, ".")
	ordinal, _ := strconv.Atoi(parts[0][len(parts[1])+1:])
	return parts[0], parts[1], parts[2], &etcdserverpb.ResponseHeader{ClusterId: fakeClusterID, MemberId: uint64(ordinal + 1), Revision: 7, RaftTerm: 2}
}

func (m quietMember) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	_, _, _, header := m.asked(ctx)
	return &etcdserverpb.StatusResponse{Header: header, Version: "3.6.16", StorageVersion: "3.6.0", DbSize: 64 << 10, DbSizeInUse: 64 << 10,
		Leader: 1, RaftIndex: 9, RaftAppliedIndex: 9, RaftTerm: 2}, nil
}

func (m quietMember) MemberList(ctx context.Context, _ *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	_, name, namespace, header := m.asked(ctx)
	answer := &etcdserverpb.MemberListResponse{Header: header}
	for i := range 3 {
		answer.Members = append(answer.Members, &etcdserverpb.Member{ID: uint64(i + 1), Name: objects.PodName(name, i),
			PeerURLs: []string{m.fleet.peer(namespace, name, i)}, ClientURLs: []string{"https://x"}})
	}
	return answer, nil
}
