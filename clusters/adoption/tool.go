package adoption

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tool is a tool that runs etcd in Kubernetes.
type Tool struct {
	// Name is the tool's name, or "" if the tool is unknown.
	Name string
	// Stop describes how to stop the tool, so that it does not add or remove members.
	Stop string
	// Rejoins is set if a removed member deletes its data and keeps rejoining until its pod is stopped.
	Rejoins bool
	// Configures is set if the tool sets etcd's options outside the StatefulSet.
	Configures bool
	// ConfigMapsOnlyBootstrap is set if the ConfigMaps that set the container's environment contain only the options
	// that a member needs to bootstrap or join a cluster.
	ConfigMapsOnlyBootstrap bool
	// DeletesVolumes is set if deleting the tool's custom resource deletes the members' volumes.
	DeletesVolumes bool
}

const stopUnknown = "Suspend everything that applies or scales the StatefulSet, such as a GitOps sync, an operator " +
	"or an autoscaler."

// toolOf recognizes the tool that manages a StatefulSet.
func toolOf(set *appsv1.StatefulSet, image string, options map[string]string) Tool {
	if owner := metav1.GetControllerOf(set); owner != nil {
		if kind := kindOf(owner); kind != nil {
			return kind.Tool
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
