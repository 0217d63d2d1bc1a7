package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// BenchmarkQuietPass looks at very many clusters of three that are as declared: an API server and members of
// etcd in this process answer, so that profiles tell where the time and the memory of a pass go without a
// sandbox. QUORATE_FLEET says how many clusters instead of 100.
func BenchmarkQuietPass(b *testing.B) {
	f := newQuietFleet(b, fleetSize(b))
	b.ReportAllocs()
	for b.Loop() {
		f.asked.Store(0)
		live := New(f.client, Options{Timeout: time.Minute})
		r := &reconcile.Reconciler{Source: f, Live: live, Log: slog.New(slog.DiscardHandler), Plan: true}
		rep := r.Pass(b.Context())
		for _, c := range rep.Clusters {
			if c.Error != "" || c.Decision.Rule != decide.Converged {
				b.Fatalf("%s: %s %s", c.Key(), c.Error, c.Decision)
			}
		}
		b.ReportMetric(float64(f.asked.Load()), "requests/op")
		if err := live.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQuietFloor does what no pass can do without, and nothing else: the LISTs, and a connection to each member for
// its status and one list of members.
func BenchmarkQuietFloor(b *testing.B) {
	f := newQuietFleet(b, fleetSize(b))
	b.ReportAllocs()
	for b.Loop() {
		listed, err := f.client.List(b.Context(), "", objects.Managed, kube.Whole)
		f.check(err)
		owned := inventory.Sort(listed)
		var group errgroup.Group
		group.SetLimit(16)
		for key, own := range owned {
			group.Go(func() error { return f.floorOf(b.Context(), key, own) })
		}
		f.check(group.Wait())
	}
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
	for i := range own.Pods {
		members.Go(func() error {
			config := &tls.Config{ServerName: f.host(key.Namespace, key.Name, i), Certificates: []tls.Certificate{pair},
				RootCAs: roots, MinVersion: tls.VersionTLS12}
			conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(f.address, strconv.Itoa(objects.ClientPort)),
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

// BenchmarkListed tells how much memory a listing keeps.
func BenchmarkListed(b *testing.B) {
	f := newQuietFleet(b, fleetSize(b))
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

func fleetSize(b *testing.B) int {
	said := os.Getenv("QUORATE_FLEET")
	if said == "" {
		return 100
	}
	n, err := strconv.Atoi(said)
	if err != nil {
		b.Fatalf("QUORATE_FLEET: %v", err)
	}
	return n
}

// heap is how much of it is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// quietFleet is an API server that has the objects of very many clusters, and the etcd of them.
type quietFleet struct {
	testing.TB
	client  *kube.Client
	desired reconcile.Desired
	// lists are the objects of each resource.
	lists   map[string][]k8sruntime.Object
	asked   atomic.Int64
	address string
	// ahead is how far the clocks of the API server and of all members are ahead of this machine's.
	ahead time.Duration

	mu sync.Mutex
	// pages are those that were asked for, as they were sent.
	pages map[string][]byte
	// hosts are the members, by the name that clients ask for.
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
	f := &quietFleet{TB: b, ahead: ahead, lists: map[string][]k8sruntime.Object{}, pages: map[string][]byte{},
		hosts: map[string]*tls.Config{}, address: fmt.Sprintf("127.%d.%d.1", 1+rand.IntN(254), rand.IntN(256))}
	f.desired.Sources = []reconcile.Place{{Name: "git", Revision: "main@sha1:1"}}
	for n := range clusters {
		f.add(fmt.Sprint("ns-", n%20), fmt.Sprintf("c%05d", n))
	}
	f.serveEtcd()
	client, err := kube.New(kubetest.Answering(b, f.list))
	if err != nil {
		b.Fatal(err)
	}
	f.client = client
	return f
}

// add adds a cluster that is as declared.
func (f *quietFleet) add(namespace, name string) {
	declared := f.declare(namespace, name)
	c := declared.Cluster.DeepCopy()
	c.UID = types.UID("uid-of-" + name)
	c.Labels = objects.Labels(name)
	c.Status.ClusterID = "c1"
	record := decide.FoundingRecord("f00d", 3)
	record.ClusterID = fakeClusterID
	peers := map[string]string{}
	for i := range record.Members {
		m := &record.Members[i]
		m.Mode, m.ID, m.VolumeUID = decide.Sealed, decide.ID(i+1), fmt.Sprint("volume-", i)
		peers[objects.PodName(name, i)] = f.peer(namespace, name, i)
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

// declare declares a cluster that says no more than it must.
func (f *quietFleet) declare(namespace, name string) *reconcile.Declaration {
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
	return d
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

func (f *quietFleet) host(namespace, name string, ordinal int) string {
	return fmt.Sprintf("%s.%s.%s.svc", objects.PodName(name, ordinal), name, namespace)
}

// now is the time by the clocks of the API server and of all members.
func (f *quietFleet) now() time.Time { return time.Now().Add(f.ahead) }

// put files a live object under its resource.
func (f *quietFleet) put(object k8sruntime.Object) {
	resource, _ := meta.UnsafeGuessKindToResource(object.GetObjectKind().GroupVersionKind())
	f.lists[resource.Resource] = append(f.lists[resource.Resource], object)
}

// live is an object as the API server has it once it was applied, with what two managers own of it.
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

// addPods adds the pods of a cluster that is there otherwise, and their volumes, and has etcd answer in them.
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
		f.hosts[f.host(c.Namespace, c.Name, m.Ordinal)] = config
	}
}

func serving(k objects.Certificates) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(k.Server.Certificate, k.Server.Key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.CA.Certificate)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}, err
}

// list answers a LIST as the API server does, page by page.
func (f *quietFleet) list(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	w.Header().Set("Date", f.now().UTC().Format(http.TimeFormat))
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	if resource == "etcdclusters" {
		w.Header().Set("Content-Type", "application/json")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprint(resource, from)
	if f.pages[key] == nil {
		f.pages[key] = f.page(resource, from, size)
	}
	_, _ = w.Write(f.pages[key])
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

// serveEtcd answers as all members.
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

// quietMember answers as the member that TLS was set up for.
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
