package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

const (
	// nobody is the user and group ID with which etcd runs.
	nobody = 65532
	// secretMode lets the group read the files, because they belong to root and etcd does not run as root.
	secretMode = 0o440
	// gracePeriod is the termination grace period in seconds. A leader first transfers leadership, which takes no
	// longer than one election.
	gracePeriod = 30

	etcdCommand     = "/usr/local/bin/etcd"
	volumeMembers   = "members"
	volumePeerTLS   = "peer-tls"
	volumeServerTLS = "server-tls"
)

func podTemplate(c *v1alpha1.EtcdCluster, t Template) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	spec, err := podSpec(c, t)
	if err != nil {
		return nil, err
	}
	labels, annotations := plain(c.Spec.Pod.Labels), plain(c.Spec.Pod.Annotations)
	maps.Copy(labels, MemberLabels(c.Name))
	annotations[AnnotationVersion], annotations[AnnotationSpecHash] = t.Version, t.SpecHash
	return applycorev1.PodTemplateSpec().
		WithLabels(labels).
		WithAnnotations(annotations).
		WithSpec(spec), nil
}

// podSpec returns a member's pod spec, which satisfies the restricted Pod Security Standard.
func podSpec(c *v1alpha1.EtcdCluster, t Template) (*applycorev1.PodSpecApplyConfiguration, error) {
	container, err := container(c, t)
	if err != nil {
		return nil, err
	}
	spec := applycorev1.PodSpec().
		WithAutomountServiceAccountToken(false).
		// For a Service named etcd, Kubernetes would set variables such as ETCD_PORT, which etcd would read as its
		// options.
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(gracePeriod).
		WithSecurityContext(podSecurity()).
		WithContainers(container).
		WithVolumes(volumes(c)...)
	for _, s := range c.Spec.Image.PullSecrets {
		spec.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(s.Name))
	}
	return spec, placement(c, spec)
}

// podSecurity returns the security context that is common to all pods that write to a member's volume.
func podSecurity() *applycorev1.PodSecurityContextApplyConfiguration {
	return applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithRunAsUser(nobody).
		WithRunAsGroup(nobody).
		WithFSGroup(nobody).
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func container(c *v1alpha1.EtcdCluster, t Template) (*applycorev1.ContainerApplyConfiguration, error) {
	v, err := declaredVersion(c.Spec.Version)
	if err != nil {
		return nil, err
	}
	container := applycorev1.Container().
		WithName(Container).
		WithImage(image(c.Spec)).
		// A node that already has the image does not contact the registry. A tag may move; a digest never does.
		WithImagePullPolicy(corev1.PullIfNotPresent).
		// Kubernetes expands the variable, because the image has no shell (hard case H112).
		WithCommand(etcdCommand, "--config-file="+membersMount+"/"+
			ConfigKey("$(POD_NAME)", t)).
		WithEnv(applycorev1.EnvVar().WithName("POD_NAME").WithValueFrom(applycorev1.EnvVarSource().
			WithFieldRef(applycorev1.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.name")))).
		WithPorts(containerPort("peer", PeerPort), containerPort("client", ClientPort),
			containerPort("metrics", MetricsPort)).
		WithVolumeMounts(mounts(c)...).
		WithStartupProbe(startupProbe(v)).
		WithLivenessProbe(livenessProbe(v)).
		WithReadinessProbe(readinessProbe(v)).
		// Copy the last log messages of an exiting etcd to the pod's status.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
	container.Resources = memberResources(c)
	return container, nil
}

// memberResources returns the declared resources of a member, or nil.
func memberResources(c *v1alpha1.EtcdCluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	r := c.Spec.Pod.Resources
	if len(r.Limits)+len(r.Requests) == 0 {
		return nil
	}
	return &applycorev1.ResourceRequirementsApplyConfiguration{
		Limits: resourceList(r.Limits), Requests: resourceList(r.Requests),
	}
}

// image returns the image with its tag and, if declared, the digest of the version. If there is a digest, nodes ignore
// the tag.
func image(spec v1alpha1.EtcdClusterSpec) string {
	name := spec.Image.Repository + ":v" + spec.Version
	if digest := spec.Image.Digests[spec.Version]; digest != "" {
		name += "@" + string(digest)
	}
	return name
}

// resourceList rounds quantities up to thousandths, as the API server does.
func resourceList(quantities map[string]resource.Quantity) *corev1.ResourceList {
	if len(quantities) == 0 {
		return nil
	}
	list := corev1.ResourceList{}
	for name, quantity := range quantities {
		quantity = quantity.DeepCopy()
		quantity.RoundUp(resource.Milli)
		list[corev1.ResourceName(name)] = quantity
	}
	return &list
}

func containerPort(name string, port int32) *applycorev1.ContainerPortApplyConfiguration {
	return applycorev1.ContainerPort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithContainerPort(port)
}

func volumes(c *v1alpha1.EtcdCluster) []*applycorev1.VolumeApplyConfiguration {
	names := NamesOf(c.Name)
	list := []*applycorev1.VolumeApplyConfiguration{
		applycorev1.Volume().WithName(volumeMembers).
			WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(names.ConfigMap)),
	}
	if !secure(c) {
		return list
	}
	secretVolume := func(name, secret string) *applycorev1.VolumeApplyConfiguration {
		return applycorev1.Volume().WithName(name).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(secretMode))
	}
	return append(list, secretVolume(volumePeerTLS, names.PeerSecret),
		secretVolume(volumeServerTLS, names.ServerSecret))
}

func mounts(c *v1alpha1.EtcdCluster) []*applycorev1.VolumeMountApplyConfiguration {
	mount := func(name, path string) *applycorev1.VolumeMountApplyConfiguration {
		return applycorev1.VolumeMount().WithName(name).WithMountPath(path)
	}
	list := []*applycorev1.VolumeMountApplyConfiguration{
		mount(volumeData, dataMount),
		mount(volumeMembers, membersMount).WithReadOnly(true),
	}
	if !secure(c) {
		return list
	}
	return append(list,
		mount(volumePeerTLS, peerTLSMount).WithReadOnly(true),
		mount(volumeServerTLS, serveTLSMount).WithReadOnly(true))
}
