package scenarios

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var etcdclusters = schema.GroupVersionResource{Group: "etcd.quorate.dev", Version: "v1alpha1", Resource: "etcdclusters"}

// status is the serialized status of an EtcdCluster.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
	DeclaredRevision   string             `json:"declaredRevision"`
	Rule               string             `json:"rule"`
	ClusterID          string             `json:"clusterID"`
	Leader             string             `json:"leader"`
	Version            string             `json:"version"`
	Voters             string             `json:"voters"`
	Replicas           int                `json:"replicas"`
	ReadyReplicas      int                `json:"readyReplicas"`
	Selector           string             `json:"selector"`
	Endpoints          []string           `json:"endpoints"`
	ClientSecretName   string             `json:"clientSecretName"`
	Members            []memberStatus     `json:"members"`
	Waiting            []waitStatus       `json:"waiting"`
	Defragmentation    struct {
		Request   string `json:"request"`
		Completed bool   `json:"completed"`
	} `json:"defragmentation"`
}

type memberStatus struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Role        string `json:"role"`
	Version     string `json:"version"`
	Health      string `json:"health"`
	Message     string `json:"message"`
	Revision    int64  `json:"revision"`
	DBSize      int64  `json:"dbSize"`
	DBSizeInUse int64  `json:"dbSizeInUse"`
	// DefragmentedAt is zero if the member has never been defragmented.
	DefragmentedAt metav1.Time `json:"defragmentedAt"`
	Alarms         []string    `json:"alarms"`
	Pod            string      `json:"pod"`
	Since          metav1.Time `json:"since"`
}

// condition returns the condition of the given type, or an empty condition.
func (s status) condition(name string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{}
}

// member returns the status of the named member, or an empty status.
func (s status) member(name string) memberStatus {
	for _, m := range s.Members {
		if m.Name == name {
			return m
		}
	}
	return memberStatus{}
}

// resource reads the custom resource.
func (w *world) resource(name string) *unstructured.Unstructured {
	w.t.Helper()
	object, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return object
}

// status reads the status of the custom resource.
func (w *world) status(name string) status {
	w.t.Helper()
	var got status
	convert(w.t, w.resource(name).Object["status"], &got)
	return got
}

func (w *world) requireCondition(name, conditionType, value, reason string) {
	w.t.Helper()
	c := w.status(name).condition(conditionType)
	if string(c.Status) != value || (reason != "" && c.Reason != reason) {
		w.t.Errorf("condition %s of %s is %q for %q (%s), want %q for %q", conditionType, name, c.Status, c.Reason, c.Message, value, reason)
	}
}

func convert(t testing.TB, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}
