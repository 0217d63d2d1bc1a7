package adoption

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tool is a tool that runs etcd in StatefulSets.
type Tool struct {
	// Name is the tool's name, or "" if the tool is unknown.
	Name string
	// Stop describes how to stop the tool, so that it does not add or remove members.
	Stop string
	// Rejoins is set if a removed member deletes its data and keeps rejoining until its pod is stopped.
	Rejoins bool
	// Configures is set if the tool sets etcd's options outside the StatefulSet.
	Configures bool
}

const stopUnknown = "Suspend everything that applies or scales the StatefulSet, such as a GitOps sync, an operator " +
	"or an autoscaler."

// operators lists the known operators by the API group of their custom resources.
var operators = map[string]Tool{
	"operator.etcd.io": {Name: "the etcd-io operator",
		Stop: "Scale the operator's Deployment to 0. Nothing else prevents the operator from scaling the StatefulSet."},
	"etcd.aenix.io": {Name: "the aenix etcd operator",
		Stop: "Scale the Deployment etcd-operator-controller-manager to 0."},
	"druid.gardener.cloud": {Name: "etcd-druid", Rejoins: true, Configures: true,
		Stop: "Annotate the Etcd resource with druid.gardener.cloud/suspend-etcd-spec-reconcile and " +
			"druid.gardener.cloud/disable-etcd-component-protection, and suspend its compaction."},
}

// toolOf recognizes the tool that manages a StatefulSet.
func toolOf(set *appsv1.StatefulSet, image string, options map[string]string) Tool {
	if owner := metav1.GetControllerOf(set); owner != nil {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if tool, known := operators[group]; known {
			return tool
		}
		return Tool{Stop: "Stop the controller of the object that owns the StatefulSet."}
	}
	switch {
	case options["on-k8s"] != "", strings.Contains(image, "bitnami"): // ETCD_ON_K8S
		return Tool{Name: "the Bitnami chart", Rejoins: true,
			Stop: "Do not upgrade the Helm release, and suspend its GitOps sync: an upgrade removes members that the " +
				"chart does not know about."}
	case set.Name == "pl-etcd":
		return Tool{Name: "Pixie", Rejoins: true, Stop: "Scale the vizier operator to 0."}
	}
	return Tool{Stop: stopUnknown}
}
