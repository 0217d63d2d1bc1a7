package adoption

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reasons why a field is not carried over.
const (
	forOperator = "only the operator uses it"
	ownSpread   = "replicas are spread over zones and nodes as far as possible. To require this, declare " +
		"spec.pod.affinity"
	ownMetadata   = "if Services or tools depend on it, declare spec.pod.labels or spec.pod.annotations"
	ownImage      = "replicas use the image in spec.image"
	ownUser       = "replicas run as an unprivileged user"
	ownBudget     = "Quorate creates its own PodDisruptionBudget"
	onlyEtcd      = "only the etcd container's resources and options are"
	ownServices   = "Quorate creates its own Services"
	ownVolumes    = "replicas use a volume of the declared size and class"
	ownMembership = "replicas have their own names and URLs"
	caInstead     = "replicas get certificates from the CA in spec.adopt.caSecretName"
	backupInstead = "declare backups as described in docs/how-to/back-up.md"
	rootBySecret  = "Quorate does not use passwords (see docs/how-to/certificates.md)"
)

// Paths in the declaration that several operators have fields for.
const (
	toReplicas     = "spec.replicas"
	toVersion      = "spec.version"
	toSize         = "spec.storage.size"
	toStorageClass = "spec.storage.storageClassName"
	toResources    = "spec.pod.resources"
	toTolerations  = "spec.pod.tolerations"
	toNodeSelector = "spec.pod.nodeSelector"
	toNodeAffinity = "spec.pod.affinity.nodeAffinity"
	toPriority     = "spec.pod.priorityClassName"
	toEtcd         = "spec.etcd"
)

func resourceOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

func to(path string) Field { return Field{To: path} }

func drop(reason string) Field { return Field{Reason: reason} }

// kinds lists the known kinds of custom resources. The field names come from the operators' Go types.
var kinds = []*Kind{
	{
		Name:     "EtcdCluster",
		Resource: resourceOf("etcd.database.coreos.com", "v1beta2", "etcdclusters"),
		Tool: Tool{Name: "the coreos etcd operator", DeletesVolumes: true,
			Stop: "Set spec.paused to true in the EtcdCluster. From then on, a member whose pod stops does not come " +
				"back."},
		Selector:      func(name string) string { return "app=etcd,etcd_cluster=" + name },
		PodController: "EtcdCluster",
		Paused: func(object *unstructured.Unstructured) bool {
			paused, _, err := unstructured.NestedBool(object.Object, "spec", "paused")
			return paused && err == nil
		},
		Pause: "Set spec.paused to true",
		Fields: merged(affinity("spec.pod.affinity"), claim("spec.pod.persistentVolumeClaimSpec"), map[string]Field{
			"spec.size":                   to(toReplicas),
			"spec.version":                to(toVersion),
			"spec.repository":             drop(ownImage),
			"spec.paused":                 drop(forOperator),
			"spec.TLS":                    drop(caInstead),
			"spec.pod.labels":             drop(ownMetadata),
			"spec.pod.annotations":        drop(ownMetadata),
			"spec.pod.nodeSelector":       to(toNodeSelector),
			"spec.pod.antiAffinity":       drop(ownSpread),
			"spec.pod.resources":          to(toResources),
			"spec.pod.tolerations":        to(toTolerations),
			"spec.pod.etcdEnv":            to(toEtcd),
			"spec.pod.busyboxImage":       drop(forOperator),
			"spec.pod.DNSTimeoutInSecond": drop(forOperator),
			"spec.pod.ClusterDomain":      drop(ownMembership),
			"spec.pod.securityContext":    drop(ownUser),
		}),
	},
	{
		Name:     "EtcdCluster",
		Resource: resourceOf("etcd.improbable.io", "v1alpha1", "etcdclusters"),
		Tool: Tool{Name: "the improbable etcd cluster operator",
			Stop: "Scale the operator's Deployment to 0."},
		Selector:      func(name string) string { return "etcd.improbable.io/cluster-name=" + name },
		PodController: "ReplicaSet",
		Fields: merged(affinity("spec.podTemplate.affinity"), claim("spec.storage.volumeClaimTemplate"),
			map[string]Field{
				"spec.replicas":              to(toReplicas),
				"spec.version":               to(toVersion),
				"spec.podTemplate.metadata":  drop(ownMetadata),
				"spec.podTemplate.resources": to(toResources),
			}),
	},
	{
		Name:     "EtcdCluster",
		Resource: resourceOf("operator.etcd.io", "v1alpha1", "etcdclusters"),
		Tool: Tool{Name: "the etcd-io operator", ConfigMapsOnlyBootstrap: true,
			Stop: "Scale the operator's Deployment to 0. Nothing else prevents the operator from scaling the " +
				"StatefulSet."},
		Fields: merged(affinity("spec.podTemplate.spec.affinity"), map[string]Field{
			"spec.size":                          to(toReplicas),
			"spec.version":                       to(toVersion),
			"spec.imageRegistry":                 drop(ownImage),
			"spec.storageSpec.volumeSizeRequest": to(toSize),
			"spec.storageSpec.storageClassName":  to(toStorageClass),
			"spec.storageSpec":                   drop(ownVolumes),
			"spec.tls":                           drop(caInstead),
			"spec.etcdOptions":                   to(toEtcd),
			"spec.podTemplate.metadata":          drop(ownMetadata),
			"spec.podTemplate.spec.nodeSelector": to(toNodeSelector),
			"spec.podTemplate.spec.tolerations":  to(toTolerations),
		}),
	},
	{
		Name:     "EtcdCluster",
		Resource: resourceOf("etcd.aenix.io", "v1alpha1", "etcdclusters"),
		Tool: Tool{Name: "the aenix etcd operator", ConfigMapsOnlyBootstrap: true,
			Stop: "Scale the Deployment etcd-operator-controller-manager to 0."},
		Fields: merged(affinity("spec.podTemplate.spec.affinity"), claim("spec.storage.volumeClaimTemplate.spec"),
			map[string]Field{
				"spec.replicas":                                   to(toReplicas),
				"spec.options":                                    to(toEtcd),
				"spec.storage.emptyDir":                           drop(ownVolumes),
				"spec.storage.volumeClaimTemplate":                drop(ownVolumes),
				"spec.security.tls":                               drop(caInstead),
				"spec.security.enableAuth":                        drop(rootBySecret),
				"spec.serviceTemplate":                            drop(ownServices),
				"spec.headlessServiceTemplate":                    drop(ownServices),
				"spec.podDisruptionBudgetTemplate":                drop(ownBudget),
				"spec.podTemplate.metadata":                       drop(ownMetadata),
				"spec.podTemplate.spec.nodeSelector":              to(toNodeSelector),
				"spec.podTemplate.spec.tolerations":               to(toTolerations),
				"spec.podTemplate.spec.priorityClassName":         to(toPriority),
				"spec.podTemplate.spec.containers":                drop(onlyEtcd),
				"spec.podTemplate.spec.securityContext":           drop(ownUser),
				"spec.podTemplate.spec.imagePullSecrets":          drop("declare spec.image.pullSecrets"),
				"spec.podTemplate.spec.serviceAccountName":        drop("replicas do not use a service account"),
				"spec.podTemplate.spec.topologySpreadConstraints": drop(ownSpread),
			}),
	},
	{
		Name:     "EtcdCluster",
		Resource: resourceOf("etcd-operator.cozystack.io", "v1alpha2", "etcdclusters"),
		Tool: Tool{Name: "the cozystack etcd operator", DeletesVolumes: true,
			Stop: "Scale the operator's Deployment to 0. From then on, do not delete any EtcdMember."},
		Selector:      func(name string) string { return "etcd-operator.cozystack.io/cluster=" + name },
		PodController: "EtcdMember",
		Fields: merged(affinity("spec.affinity"), map[string]Field{
			"spec.replicas":                  to(toReplicas),
			"spec.version":                   to(toVersion),
			"spec.storage.size":              to(toSize),
			"spec.storage.storageClassName":  to(toStorageClass),
			"spec.storage.medium":            drop(ownVolumes),
			"spec.progressDeadlineSeconds":   drop(forOperator),
			"spec.tls":                       drop(caInstead),
			"spec.auth":                      drop(rootBySecret),
			"spec.bootstrap":                 drop("the cluster already exists"),
			"spec.resources":                 to(toResources),
			"spec.additionalMetadata":        drop(ownMetadata),
			"spec.topologySpreadConstraints": drop(ownSpread),
			"spec.imagePullSecrets":          drop("declare spec.image.pullSecrets"),
			"spec.options":                   to(toEtcd),
		}),
	},
	{
		Name:     "Etcd",
		Resource: resourceOf("druid.gardener.cloud", "v1alpha1", "etcds"),
		Tool: Tool{Name: "etcd-druid", Rejoins: true, Configures: true,
			Stop: "Annotate the Etcd resource with druid.gardener.cloud/suspend-etcd-spec-reconcile and " +
				"druid.gardener.cloud/disable-etcd-component-protection."},
		Paused: func(object *unstructured.Unstructured) bool {
			_, suspended := object.GetAnnotations()["druid.gardener.cloud/suspend-etcd-spec-reconcile"]
			return suspended
		},
		Options: druidOptions,
		Pause:   "Annotate the Etcd resource with druid.gardener.cloud/suspend-etcd-spec-reconcile",
		Fields: merged(affinity("spec.schedulingConstraints.affinity"), druidEtcd(), map[string]Field{
			"spec.replicas":            to(toReplicas),
			"spec.storageCapacity":     to(toSize),
			"spec.storageClass":        to(toStorageClass),
			"spec.volumeClaimTemplate": drop(ownVolumes),
			"spec.priorityClassName":   to(toPriority),
			"spec.runAsRoot":           drop(ownUser),
			"spec.memberNamePrefix":    drop(ownMembership),
			"spec.selector":            drop(ownMetadata),
			"spec.labels":              drop(ownMetadata),
			"spec.annotations":         drop(ownMetadata),
			"spec.backup":              drop(backupInstead),
			"spec.sharedConfig":        to("spec.etcd.autoCompaction"),
			"spec.schedulingConstraints.topologySpreadConstraints": drop(ownSpread),
		}),
	},
}

// druidEtcd returns the fields of spec.etcd in etcd-druid's Etcd resource.
func druidEtcd() map[string]Field {
	fields := map[string]Field{
		"spec.etcd.quota":                       to("spec.etcd.quota"),
		"spec.etcd.snapshotCount":               to("spec.etcd.snapshotCount"),
		"spec.etcd.metrics":                     to("spec.etcd.options.metrics"),
		"spec.etcd.resources":                   to(toResources),
		"spec.etcd.image":                       drop(ownImage),
		"spec.etcd.authSecretRef":               drop(rootBySecret),
		"spec.etcd.clientUrlTls":                drop(caInstead),
		"spec.etcd.peerUrlTls":                  drop(caInstead),
		"spec.etcd.clientService":               drop(ownServices),
		"spec.etcd.additionalAdvertisePeerURLs": drop(ownMembership),
		"spec.etcd.enableGRPCGateway":           drop("replicas use etcd's default"),
		"spec.etcd.backendBboltFreelistType":    drop("replicas use etcd's default"),
	}
	for _, name := range []string{"serverPort", "clientPort", "wrapperPort"} {
		fields["spec.etcd."+name] = drop("replicas use etcd's default ports")
	}
	fields["spec.etcd.defragmentationSchedule"] = drop("declare thresholds in spec.etcd.defragmentation instead")
	for _, name := range []string{"etcdDefragTimeout", "heartbeatDuration", "bootstrapWithExistingCluster"} {
		fields["spec.etcd."+name] = drop(forOperator)
	}
	return fields
}

// druidOptions returns the options that etcd-druid writes to a ConfigMap, with etcd-druid's own defaults.
func druidOptions(object *unstructured.Unstructured) map[string]string {
	text := func(path string) string {
		if value := valueAt(object.Object, path); value != nil {
			return fmt.Sprint(value)
		}
		return ""
	}
	options := map[string]string{
		quotaOption:                 "invalid",
		"snapshot-count":            text("spec.etcd.snapshotCount"),
		"auto-compaction-mode":      text("spec.sharedConfig.autoCompactionMode"),
		"auto-compaction-retention": cmp.Or(text("spec.sharedConfig.autoCompactionRetention"), "30m"),
		"metrics":                   text("spec.etcd.metrics"),
	}
	quota, err := resource.ParseQuantity(cmp.Or(text("spec.etcd.quota"), "8Gi"))
	if err == nil && quota.Value() > 0 {
		options[quotaOption] = strconv.FormatInt(quota.Value(), 10)
	}
	scheme := "http"
	if has(object.Object, "spec.etcd.clientUrlTls") {
		scheme, options["client-cert-auth"] = "https", "true"
	}
	port := cmp.Or(text("spec.etcd.clientPort"), strconv.Itoa(defaultClientPort))
	options["listen-client-urls"] = fmt.Sprintf("%s://0.0.0.0:%s", scheme, port)
	if has(object.Object, "spec.etcd.peerUrlTls") {
		options["peer-client-cert-auth"] = "true"
	}
	maps.DeleteFunc(options, func(_, value string) bool { return value == "" })
	return options
}

// affinity returns the fields of a pod's affinity.
func affinity(path string) map[string]Field {
	return map[string]Field{
		path + ".nodeAffinity":    to(toNodeAffinity),
		path + ".podAffinity":     drop("it may depend on the labels of the old pods"),
		path + ".podAntiAffinity": drop(ownSpread),
	}
}

// claim returns the fields of a volume claim's specification.
func claim(path string) map[string]Field {
	fields := map[string]Field{
		path + ".resources.requests.storage": to(toSize),
		path + ".storageClassName":           to(toStorageClass),
	}
	for _, name := range []string{"accessModes", "volumeMode", "selector", "resources.limits", "dataSource"} {
		fields[path+"."+name] = drop(ownVolumes)
	}
	return fields
}

// merged returns the entries of all maps.
func merged[V any](all ...map[string]V) map[string]V {
	entries := map[string]V{}
	for _, some := range all {
		maps.Copy(entries, some)
	}
	return entries
}
