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
	forOperator   = "only the operator uses it"
	ownSpread     = "replicas are spread over zones and nodes as far as possible; to require it, declare spec.pod.affinity"
	ownMetadata   = "if Services or tools depend on it, declare spec.pod.labels or spec.pod.annotations"
	ownImage      = "replicas use the image in spec.image"
	ownUser       = "replicas run as an unprivileged user"
	ownServices   = "Quorate creates its own Services"
	ownVolumes    = "replicas use a volume of the declared size and class"
	ownMembership = "replicas have their own names and URLs"
	caInstead     = "replicas get certificates from the CA in spec.adopt.caSecretName"
	backupInstead = "declare backups as described in docs/how-to/back-up.md"
	rootBySecret  = "Quorate does not use passwords; see docs/how-to/certificates.md"
)

// The paths of the declaration that several operators have fields for.
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
)

// toEtcd describes a field with etcd's options.
var toEtcd = Field{To: "spec.etcd", Except: "except any options listed above"}

func to(path string) Field { return Field{To: path} }

func dropped(reason string) Field { return Field{Reason: reason} }

// kinds lists the known kinds of custom resources. Their fields are those of the operators' Go types.
var kinds = []*Kind{
	{
		Name:     "EtcdCluster",
		Resource: schema.GroupVersionResource{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdclusters"},
		Tool: Tool{Name: "the coreos etcd operator", DeletesVolumes: true,
			Stop: "Set spec.paused of the EtcdCluster to true. From then on, a member whose pod stops does not come back."},
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
			"spec.repository":             dropped(ownImage),
			"spec.paused":                 dropped(forOperator),
			"spec.TLS":                    dropped(caInstead),
			"spec.pod.labels":             dropped(ownMetadata),
			"spec.pod.annotations":        dropped(ownMetadata),
			"spec.pod.nodeSelector":       to(toNodeSelector),
			"spec.pod.antiAffinity":       dropped(ownSpread),
			"spec.pod.resources":          to(toResources),
			"spec.pod.tolerations":        to(toTolerations),
			"spec.pod.etcdEnv":            toEtcd,
			"spec.pod.busyboxImage":       dropped(forOperator),
			"spec.pod.DNSTimeoutInSecond": dropped(forOperator),
			"spec.pod.ClusterDomain":      dropped(ownMembership),
			"spec.pod.securityContext":    dropped(ownUser),
		}),
	},
	{
		Name:          "EtcdCluster",
		Resource:      schema.GroupVersionResource{Group: "etcd.improbable.io", Version: "v1alpha1", Resource: "etcdclusters"},
		Tool:          Tool{Name: "the improbable etcd cluster operator", Stop: "Scale the operator's Deployment to 0."},
		Selector:      func(name string) string { return "etcd.improbable.io/cluster-name=" + name },
		PodController: "ReplicaSet",
		Fields: merged(affinity("spec.podTemplate.affinity"), claim("spec.storage.volumeClaimTemplate"), map[string]Field{
			"spec.replicas":              to(toReplicas),
			"spec.version":               to(toVersion),
			"spec.podTemplate.metadata":  dropped(ownMetadata),
			"spec.podTemplate.resources": to(toResources),
		}),
	},
	{
		Name:     "EtcdCluster",
		Resource: schema.GroupVersionResource{Group: "operator.etcd.io", Version: "v1alpha1", Resource: "etcdclusters"},
		Tool: Tool{Name: "the etcd-io operator", OnlyStarts: true,
			Stop: "Scale the operator's Deployment to 0. Nothing else prevents the operator from scaling the StatefulSet."},
		Fields: merged(affinity("spec.podTemplate.spec.affinity"), map[string]Field{
			"spec.size":                          to(toReplicas),
			"spec.version":                       to(toVersion),
			"spec.imageRegistry":                 dropped(ownImage),
			"spec.storageSpec.volumeSizeRequest": to(toSize),
			"spec.storageSpec.storageClassName":  to(toStorageClass),
			"spec.storageSpec":                   dropped(ownVolumes),
			"spec.tls":                           dropped(caInstead),
			"spec.etcdOptions":                   toEtcd,
			"spec.podTemplate.metadata":          dropped(ownMetadata),
			"spec.podTemplate.spec.nodeSelector": to(toNodeSelector),
			"spec.podTemplate.spec.tolerations":  to(toTolerations),
		}),
	},
	{
		Name:     "EtcdCluster",
		Resource: schema.GroupVersionResource{Group: "etcd.aenix.io", Version: "v1alpha1", Resource: "etcdclusters"},
		Tool: Tool{Name: "the aenix etcd operator",
			Stop: "Scale the Deployment etcd-operator-controller-manager to 0."},
		Fields: merged(affinity("spec.podTemplate.spec.affinity"), claim("spec.storage.volumeClaimTemplate.spec"),
			map[string]Field{
				"spec.replicas":                                   to(toReplicas),
				"spec.options":                                    toEtcd,
				"spec.storage.emptyDir":                           dropped(ownVolumes),
				"spec.storage.volumeClaimTemplate":                dropped(ownVolumes),
				"spec.security.tls":                               dropped(caInstead),
				"spec.security.enableAuth":                        dropped(rootBySecret),
				"spec.serviceTemplate":                            dropped(ownServices),
				"spec.headlessServiceTemplate":                    dropped(ownServices),
				"spec.podDisruptionBudgetTemplate":                dropped("Quorate creates its own PodDisruptionBudget"),
				"spec.podTemplate.metadata":                       dropped(ownMetadata),
				"spec.podTemplate.spec.nodeSelector":              to(toNodeSelector),
				"spec.podTemplate.spec.tolerations":               to(toTolerations),
				"spec.podTemplate.spec.priorityClassName":         to(toPriority),
				"spec.podTemplate.spec.containers":                dropped("except the resources and options of etcd's container"),
				"spec.podTemplate.spec.securityContext":           dropped(ownUser),
				"spec.podTemplate.spec.imagePullSecrets":          dropped("declare spec.image.pullSecrets"),
				"spec.podTemplate.spec.serviceAccountName":        dropped("replicas do not use a service account"),
				"spec.podTemplate.spec.topologySpreadConstraints": dropped(ownSpread),
			}),
	},
	{
		Name: "EtcdCluster",
		Resource: schema.GroupVersionResource{Group: "etcd-operator.cozystack.io", Version: "v1alpha2",
			Resource: "etcdclusters"},
		Tool: Tool{Name: "the cozystack etcd operator", DeletesVolumes: true,
			Stop: "Scale the operator's Deployment to 0. Then, never delete an EtcdMember."},
		Selector:      func(name string) string { return "etcd-operator.cozystack.io/cluster=" + name },
		PodController: "EtcdMember",
		Fields: merged(affinity("spec.affinity"), map[string]Field{
			"spec.replicas":                  to(toReplicas),
			"spec.version":                   to(toVersion),
			"spec.storage.size":              to(toSize),
			"spec.storage.storageClassName":  to(toStorageClass),
			"spec.storage.medium":            dropped(ownVolumes),
			"spec.progressDeadlineSeconds":   dropped(forOperator),
			"spec.tls":                       dropped(caInstead),
			"spec.auth":                      dropped(rootBySecret),
			"spec.bootstrap":                 dropped("the cluster exists already"),
			"spec.resources":                 to(toResources),
			"spec.additionalMetadata":        dropped(ownMetadata),
			"spec.topologySpreadConstraints": dropped(ownSpread),
			"spec.imagePullSecrets":          dropped("declare spec.image.pullSecrets"),
			"spec.options":                   toEtcd,
		}),
	},
	{
		Name:     "Etcd",
		Resource: schema.GroupVersionResource{Group: "druid.gardener.cloud", Version: "v1alpha1", Resource: "etcds"},
		Tool: Tool{Name: "etcd-druid", Rejoins: true, Configures: true,
			Stop: "Annotate the Etcd resource with druid.gardener.cloud/suspend-etcd-spec-reconcile and " +
				"druid.gardener.cloud/disable-etcd-component-protection."},
		Paused: func(object *unstructured.Unstructured) bool {
			_, suspended := object.GetAnnotations()["druid.gardener.cloud/suspend-etcd-spec-reconcile"]
			return suspended
		},
		Options: druidOptions,
		Pause:   "Annotate it with druid.gardener.cloud/suspend-etcd-spec-reconcile",
		Fields: merged(affinity("spec.schedulingConstraints.affinity"), druidEtcd(), map[string]Field{
			"spec.replicas":            to(toReplicas),
			"spec.storageCapacity":     to(toSize),
			"spec.storageClass":        to(toStorageClass),
			"spec.volumeClaimTemplate": dropped(ownVolumes),
			"spec.priorityClassName":   to(toPriority),
			"spec.runAsRoot":           dropped(ownUser),
			"spec.memberNamePrefix":    dropped(ownMembership),
			"spec.selector":            dropped(ownMetadata),
			"spec.labels":              dropped(ownMetadata),
			"spec.annotations":         dropped(ownMetadata),
			"spec.backup":              dropped(backupInstead),
			"spec.sharedConfig":        to("spec.etcd.autoCompaction"),
			"spec.schedulingConstraints.topologySpreadConstraints": dropped(ownSpread),
		}),
	},
}

// druidEtcd returns the fields of spec.etcd in etcd-druid's Etcd.
func druidEtcd() map[string]Field {
	fields := map[string]Field{
		"spec.etcd.quota":                       to("spec.etcd.quota"),
		"spec.etcd.snapshotCount":               to("spec.etcd.snapshotCount"),
		"spec.etcd.metrics":                     to("spec.etcd.options.metrics"),
		"spec.etcd.resources":                   to(toResources),
		"spec.etcd.image":                       dropped(ownImage),
		"spec.etcd.authSecretRef":               dropped(rootBySecret),
		"spec.etcd.clientUrlTls":                dropped(caInstead),
		"spec.etcd.peerUrlTls":                  dropped(caInstead),
		"spec.etcd.clientService":               dropped(ownServices),
		"spec.etcd.additionalAdvertisePeerURLs": dropped(ownMembership),
		"spec.etcd.enableGRPCGateway":           dropped("replicas use etcd's default"),
		"spec.etcd.backendBboltFreelistType":    dropped("replicas use etcd's default"),
	}
	for _, name := range []string{"serverPort", "clientPort", "wrapperPort"} {
		fields["spec.etcd."+name] = dropped("replicas use etcd's usual ports")
	}
	for _, name := range []string{"defragmentationSchedule", "etcdDefragTimeout", "heartbeatDuration",
		"bootstrapWithExistingCluster"} {
		fields["spec.etcd."+name] = dropped(forOperator)
	}
	return fields
}

// druidOptions returns the options that etcd-druid writes to a ConfigMap, with etcd-druid's own defaults.
func druidOptions(object *unstructured.Unstructured) map[string]string {
	options := map[string]string{}
	set := func(option string, path ...string) {
		if value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...); value != nil && err == nil {
			options[option] = fmt.Sprint(value)
		}
	}
	set(quotaOption, "spec", "etcd", "quota")
	quota, err := resource.ParseQuantity(cmp.Or(options[quotaOption], "8Gi"))
	if err == nil && quota.Value() > 0 {
		options[quotaOption] = strconv.FormatInt(quota.Value(), 10)
	} else {
		options[quotaOption] = "invalid"
	}
	set("snapshot-count", "spec", "etcd", "snapshotCount")
	set("auto-compaction-mode", "spec", "sharedConfig", "autoCompactionMode")
	options["auto-compaction-retention"] = "30m"
	set("auto-compaction-retention", "spec", "sharedConfig", "autoCompactionRetention")
	set("metrics", "spec", "etcd", "metrics")
	set("client-port", "spec", "etcd", "clientPort")
	port := cmp.Or(options["client-port"], strconv.Itoa(defaultClientPort))
	delete(options, "client-port")
	options["listen-client-urls"] = "http://0.0.0.0:" + port
	if has(object.Object, "spec.etcd.clientUrlTls") {
		options["listen-client-urls"] = "https://0.0.0.0:" + port
		options["client-cert-auth"] = "true"
	}
	if has(object.Object, "spec.etcd.peerUrlTls") {
		options["peer-client-cert-auth"] = "true"
	}
	return options
}

// affinity returns the fields of a pod's affinity.
func affinity(path string) map[string]Field {
	return map[string]Field{
		path + ".nodeAffinity":    to(toNodeAffinity),
		path + ".podAffinity":     dropped("it may select the labels of the old pods"),
		path + ".podAntiAffinity": dropped(ownSpread),
	}
}

// claim returns the fields of a volume claim's specification.
func claim(path string) map[string]Field {
	fields := map[string]Field{
		path + ".resources.requests.storage": to(toSize),
		path + ".storageClassName":           to(toStorageClass),
	}
	for _, name := range []string{"accessModes", "volumeMode", "selector", "resources.limits", "dataSource"} {
		fields[path+"."+name] = dropped(ownVolumes)
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
