package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// script changes cluster a without Quorate, as fast as etcd and Kubernetes allow. It carries out fixed steps without
// further checks.
type script struct {
	*world
	t    testing.TB
	etcd *clientv3.Client
}

func (w *world) newScript() *script {
	w.t.Helper()
	client, err := w.application(3)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { client.Close() })
	return &script{world: w, t: w.t, etcd: client}
}

// insist retries immediately until etcd or Kubernetes accepts the change.
func (s *script) insist(what string, do func(context.Context) error) {
	s.t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.ctx(), answerTimeout)
		err := do(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Since(start) > patience {
			s.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (s *script) patch(kind schema.GroupVersionResource, name string, change map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(change)
	if err != nil {
		s.t.Fatal(err)
	}
	s.insist("patch "+name, func(ctx context.Context) error {
		_, err := s.objects.Resource(kind).Namespace(s.namespace).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
		return err
	})
}

func (s *script) scale(replicas int) {
	s.t.Helper()
	s.patch(statefulSets, "a", map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// join adds a member as a learner, with its configuration, and scales the StatefulSet if the member needs a new pod.
func (s *script) join(ordinal int) {
	s.t.Helper()
	id := s.learn(ordinal)
	s.scale(max(3, ordinal+1))
	s.promote(id)
}

// learn adds a learner to etcd and writes the configuration with which it joins.
func (s *script) learn(ordinal int) (id uint64) {
	s.t.Helper()
	var peers []string
	url := fmt.Sprintf("https://a-%d.a.%s.svc:%d", ordinal, s.namespace, peerPort)
	s.insist("add a learner", func(ctx context.Context) error {
		added, err := s.etcd.MemberAddAsLearner(ctx, []string{s.peerURL(ctx, ordinal, url)})
		if err != nil {
			return err
		}
		id, peers = added.Member.ID, nil
		for _, m := range added.Members {
			name := m.Name
			if m.ID == id {
				name = fmt.Sprint("a-", ordinal)
			}
			peers = append(peers, name+"="+m.PeerURLs[0])
		}
		return nil
	})
	s.configure(ordinal, strings.Join(peers, ","))
	return id
}

// peerURL derives a member's peer URL from the URL of a different member. If there is none, it returns otherwise.
func (s *script) peerURL(ctx context.Context, ordinal int, otherwise string) string {
	list, err := s.etcd.MemberList(ctx)
	if err != nil {
		return otherwise
	}
	for _, m := range list.Members {
		if m.Name != "" && len(m.PeerURLs) > 0 {
			return strings.Replace(m.PeerURLs[0], m.Name, fmt.Sprint("a-", ordinal), 1)
		}
	}
	return otherwise
}

var initialCluster = regexp.MustCompile(`(?m)^initial-cluster: .*$`)

// configure writes a member's configuration, which is a copy of a different member's configuration with the member's
// own name and the members to join.
func (s *script) configure(ordinal int, peers string) {
	s.t.Helper()
	other, name := fmt.Sprint("a-", (ordinal+1)%2), fmt.Sprint("a-", ordinal)
	record, err := s.object(configMaps, "a-members")
	if err != nil {
		s.t.Fatal(err)
	}
	files := map[string]any{}
	for key, text := range record.Object["data"].(map[string]any) {
		if strings.HasPrefix(key, other) {
			text := strings.ReplaceAll(text.(string), other, name)
			files[strings.Replace(key, other, name, 1)] = initialCluster.ReplaceAllString(text, "initial-cluster: "+peers)
		}
	}
	s.patch(configMaps, "a-members", map[string]any{"data": files})
}

func (s *script) promote(id uint64) {
	s.t.Helper()
	s.insist("promote a learner", func(ctx context.Context) error {
		_, err := s.etcd.MemberPromote(ctx, id)
		return err
	})
}

// ids returns the IDs of the members by name, and the name of the leader.
func (s *script) ids() (ids map[string]uint64, leader string) {
	s.t.Helper()
	s.insist("ask for the members", func(ctx context.Context) error {
		list, err := s.etcd.MemberList(ctx)
		if err != nil {
			return err
		}
		status, err := s.etcd.Status(ctx, s.etcd.Endpoints()[0])
		if err != nil {
			return err
		}
		ids = map[string]uint64{}
		for _, m := range list.Members {
			if ids[m.Name] = m.ID; m.ID == status.Leader {
				leader = m.Name
			}
		}
		return nil
	})
	return ids, leader
}

// handOver transfers leadership to the member to, if the member name is the leader.
func (s *script) handOver(name, to string) {
	s.t.Helper()
	ids, leader := s.ids()
	if leader != name {
		return
	}
	s.insist("move the leader", func(ctx context.Context) error {
		var ordinal int
		if _, err := fmt.Sscanf(name, "a-%d", &ordinal); err != nil {
			return err
		}
		at, err := s.connectInside(ordinal)
		if err != nil {
			return err
		}
		defer at.Close()
		_, err = at.MoveLeader(ctx, ids[to])
		return err
	})
}

// connectInside connects to one member only.
func (s *script) connectInside(ordinal int) (*clientv3.Client, error) {
	client, err := s.application(ordinal + 1)
	if err != nil {
		return nil, err
	}
	client.SetEndpoints(client.Endpoints()[ordinal])
	return client, nil
}

func (s *script) remove(name string) {
	s.t.Helper()
	ids, _ := s.ids()
	s.insist("remove "+name, func(ctx context.Context) error {
		_, err := s.etcd.MemberRemove(ctx, ids[name])
		return err
	})
}

// shrink removes the fifth and then the fourth member, with their volumes.
func (s *script) shrink() {
	for _, name := range []string{"a-4", "a-3"} {
		s.handOver(name, "a-0")
		s.remove(name)
	}
	s.scale(3)
	for _, name := range []string{"a-4", "a-3"} {
		if err := s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Delete(s.ctx(), "data-"+name, metav1.DeleteOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// roll recreates all pods, the leader's last.
func (s *script) roll() {
	s.patch(statefulSets, "a", map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"rolled": "yes"}}}}})
	ids, leader := s.ids()
	names := slices.SortedFunc(maps.Keys(ids), func(a, b string) int { return strings.Compare(b, a) })
	names = append(slices.DeleteFunc(names, func(name string) bool { return name == leader }), leader)
	s.handOver(leader, names[0])
	for _, name := range names {
		before := s.podUIDs("a")[name]
		s.deletePod(name)
		s.insist(name+" is back", func(ctx context.Context) error {
			if now := s.podUIDs("a")[name]; now == "" || now == before {
				return fmt.Errorf("%s is not recreated", name)
			}
			for _, endpoint := range s.etcd.Endpoints() {
				if err := votes(ctx, s.etcd, endpoint); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// replace replaces the member whose pod is being deleted together with its volume.
func (s *script) replace() {
	name := ""
	for _, pod := range s.pods("a") {
		if pod.DeletionTimestamp != nil {
			name = pod.Name
		}
	}
	var ordinal int
	if _, err := fmt.Sscanf(name, "a-%d", &ordinal); err != nil {
		s.t.Fatalf("no pod is being deleted: %v", err)
	}
	s.remove(name)
	s.join(ordinal)
}
