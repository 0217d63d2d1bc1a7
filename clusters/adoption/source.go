// Package adoption recognizes etcd clusters that other tools run in StatefulSets or pods, and drafts declarations that
// adopt them.
package adoption

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/reconcile/decide"
)

// Source describes an etcd cluster, as far as it is visible in its StatefulSet, pods, or custom resource. Settings in
// other objects, such as a ConfigMap, are not included.
type Source struct {
	// Namespace, Kind and Name identify the object that manages the pods: a StatefulSet or a custom resource.
	Namespace, Kind, Name string
	// Owner is the object that controls the StatefulSet (such as "operator.etcd.io/v1alpha1 EtcdCluster etcd"), the
	// Helm release that installed the StatefulSet, the API version of the custom resource, or "".
	Owner string
	// Tool is the tool that manages the source.
	Tool Tool
	// Members is the number of pods.
	Members int
	// Hosts are the DNS names of the first decide.MaxGuests+1 pods. It is empty if the pods do not have DNS names.
	Hosts []string
	// Patterns match Hosts, and also the DNS names of pods that the tool may create later.
	Patterns []string
	// ClientPort is the port for clients.
	ClientPort int
	// TLS shows whether clients use TLS. It is TLSUnknown if the options that determine this are not visible.
	TLS TLS
	// Storage is the size of each member's data volume, or zero if it is unknown or members do not have volumes of
	// their own.
	Storage resource.Quantity
	// StorageClass is the class of these volumes, or nil for the default class.
	StorageClass *string
	// Ephemeral is set if a member does not have a volume of its own, or if this is unknown.
	Ephemeral bool
	// Options are etcd's options, by their command-line names, from the command, its arguments and the environment.
	Options map[string]string
	// Elsewhere is set if other objects or files, such as a script, may also set etcd's options.
	Elsewhere bool
	// Deletes is set if the StatefulSet deletes volumes when it is scaled down or deleted.
	Deletes bool
	// Differences are the names of the settings that differ between pods, in alphabetical order.
	Differences []string
	// Mixed is set if the pods use different client ports or options for TLS.
	Mixed bool
	// Pod is the pods' specification, and Resources are the resources of the container that runs etcd.
	Pod       corev1.PodSpec
	Resources corev1.ResourceRequirements
	// Custom is the custom resource that configures the tool, or nil.
	Custom *CustomResource
	// Unread is the error if the custom resource that controls the StatefulSet could not be read.
	Unread error
}

// TLS describes whether clients use TLS.
type TLS int

// The values of TLS.
const (
	TLSUnknown TLS = iota
	WithTLS
	WithoutTLS
)

// Describe returns the etcd cluster that a StatefulSet runs. custom is the custom resource that controls the
// StatefulSet, or nil. It returns an error if no container runs etcd, or if the name of the headless Service is
// invalid.
func Describe(set *appsv1.StatefulSet, custom *CustomResource) (Source, error) {
	s := Source{Namespace: set.Namespace, Kind: statefulSet, Name: set.Name, Owner: ownerOf(set), Members: 1,
		Custom: custom}
	container, err := s.readPod(set.Spec.Template.Spec)
	if err != nil {
		return Source{}, err
	}
	if set.Spec.Replicas != nil {
		s.Members = int(*set.Spec.Replicas)
	}
	if service := set.Spec.ServiceName; service != "" {
		first := 0
		if set.Spec.Ordinals != nil {
			first = int(set.Spec.Ordinals.Start)
		}
		for i := range min(s.Members, decide.MaxGuests+1) {
			s.Hosts = append(s.Hosts, s.host(fmt.Sprintf("%s-%d", set.Name, first+i), service))
		}
		s.Patterns = []string{s.host(set.Name+"-*", service)}
		if len(validation.IsDNS1123Label(service)) > 0 {
			return Source{}, fmt.Errorf("StatefulSet %s/%s: serviceName %q is not the name of a Service", set.Namespace,
				set.Name, service)
		}
	}
	s.Tool = toolOf(set, container.Image, optionsOf(container))
	s.readOptions(container)
	s.readVolume(container, func(volume string) *corev1.PersistentVolumeClaimSpec {
		return claimSpec(set.Spec.VolumeClaimTemplates, volume)
	})
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		s.Deletes = policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType ||
			policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return s, nil
}

const statefulSet = "StatefulSet"

// host returns the DNS name of a pod with the given hostname in a headless Service.
func (s *Source) host(hostname, service string) string {
	return hostname + "." + service + "." + s.Namespace + ".svc"
}

// readPod sets Pod and Resources, and returns the container that runs etcd. It returns an error if no container runs
// etcd.
func (s *Source) readPod(spec corev1.PodSpec) (*corev1.Container, error) {
	container := etcdOf(spec.Containers)
	if container == nil {
		return nil, fmt.Errorf("%s %s/%s does not run etcd: its pods do not have a container that is named etcd, "+
			"whose image name contains etcd, or that sets --listen-peer-urls", s.Kind, s.Namespace, s.Name)
	}
	s.Pod, s.Resources = spec, container.Resources
	return container, nil
}

// readOptions reads etcd's options from its command line and environment, or from the custom resource if they are not
// visible there. It sets the fields that depend on these options.
func (s *Source) readOptions(container *corev1.Container) {
	s.Options = optionsOf(container)
	if s.Custom != nil {
		for name, value := range s.Custom.Options {
			s.Options[name] = cmp.Or(s.Options[name], value)
		}
	}
	if s.Options["config-file"] != "" {
		s.Options = map[string]string{} // etcd then ignores all other options
		s.Elsewhere = true
	}
	visible := s.Options["listen-client-urls"]+s.Options["advertise-client-urls"]+s.Options["listen-peer-urls"] != ""
	taken := takesOptions(container) && !s.Tool.ConfigMapsOnlyBootstrap
	s.Elsewhere = s.Elsewhere || s.Tool.Configures || taken || !visible
	s.TLS, s.ClientPort = s.clientPort()
}

const defaultClientPort = 2379

// portInURL matches the scheme, the host and the port of a URL. The host may contain variables.
var portInURL = regexp.MustCompile(`^(https?)://(.*):([0-9]{1,5})/?$`)

// clientPort returns the port on which members listen for clients, and whether it uses TLS.
func (s Source) clientPort() (TLS, int) {
	listens := strings.Split(s.Options["listen-client-urls"]+","+s.Options["advertise-client-urls"], ",")
	for _, text := range listens {
		match := portInURL.FindStringSubmatch(strings.TrimSpace(text))
		if match == nil || isLoopback(match[2]) {
			continue
		}
		port, _ := strconv.Atoi(match[3])
		if match[1] == "https" {
			return WithTLS, port
		}
		return WithoutTLS, port
	}
	if s.Options["cert-file"] != "" {
		return WithTLS, defaultClientPort
	}
	return TLSUnknown, defaultClientPort
}

func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// endpoints returns the client URL of each member.
func (s Source) endpoints(scheme string) []string {
	var urls []string
	for _, host := range s.Hosts {
		urls = append(urls, fmt.Sprintf("%s://%s:%d", scheme, host, s.ClientPort))
	}
	return urls
}

// etcdOf returns the container that runs etcd, or nil.
func etcdOf(containers []corev1.Container) *corev1.Container {
	for _, runsEtcd := range []func(c *corev1.Container) bool{
		func(c *corev1.Container) bool { return c.Name == "etcd" },
		func(c *corev1.Container) bool { return imageName(c.Image) == "etcd" },
		func(c *corev1.Container) bool { return optionsOf(c)["listen-peer-urls"] != "" },
		func(c *corev1.Container) bool { return strings.Contains(imageName(c.Image), "etcd") },
	} {
		for i := range containers {
			if runsEtcd(&containers[i]) {
				return &containers[i]
			}
		}
	}
	return nil
}

// imageName returns the last part of an image's path, without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image, _, _ = strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return image
}

// ownerOf describes the owner of a StatefulSet, or returns "".
func ownerOf(set *appsv1.StatefulSet) string {
	if owner := metav1.GetControllerOf(set); owner != nil {
		return fmt.Sprintf("%s %s %s", owner.APIVersion, owner.Kind, owner.Name)
	}
	if release := set.Annotations["meta.helm.sh/release-name"]; release != "" {
		return "Helm release " + release
	}
	return ""
}

const environmentPrefix = "ETCD_"

// takesOptions reports whether a container takes environment variables, which may be options of etcd, from ConfigMaps,
// or all variables from any object.
func takesOptions(c *corev1.Container) bool {
	for _, variable := range c.Env {
		if strings.HasPrefix(variable.Name, environmentPrefix) && variable.ValueFrom != nil &&
			variable.ValueFrom.ConfigMapKeyRef != nil {
			return true
		}
	}
	return len(c.EnvFrom) > 0
}

// option matches an option on a command line or in a script.
var option = regexp.MustCompile(`^--?([a-z][-a-z0-9]*)(?:=(.*))?$`)

// optionsOf returns etcd's options in a container. Values that the container takes from other objects are not included.
// As in etcd, command-line options take precedence over the environment.
func optionsOf(c *corev1.Container) map[string]string {
	options := map[string]string{}
	for _, variable := range c.Env {
		if name, is := strings.CutPrefix(variable.Name, environmentPrefix); is && variable.Value != "" {
			options[strings.ReplaceAll(strings.ToLower(name), "_", "-")] = variable.Value
		}
	}
	words := words(c)
	for i, word := range words {
		match := option.FindStringSubmatch(word)
		switch {
		case match == nil:
		case strings.Contains(word, "="):
			options[match[1]] = strings.Trim(match[2], `"'`)
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && !isOperator(words[i+1]):
			options[match[1]] = words[i+1]
		default:
			options[match[1]] = "true" // a boolean option
		}
	}
	return options
}

// words returns the words of a container's command line, or of the script in it.
func words(c *corev1.Container) []string {
	var list []string
	for _, part := range [][]string{c.Command, c.Args} {
		for _, text := range part {
			for word := range strings.FieldsSeq(text) {
				if word = strings.Trim(word, `"'\`); word != "" {
					list = append(list, word)
				}
			}
		}
	}
	return list
}

// isOperator reports whether a word of a script ends a command.
func isOperator(word string) bool {
	return strings.ContainsAny(word[:1], "&|;<>()") || strings.HasPrefix(word, "2>")
}

// readVolume sets the fields about a member's data volume. claimOf returns the claim of a volume, or nil.
func (s *Source) readVolume(container *corev1.Container,
	claimOf func(volume string) *corev1.PersistentVolumeClaimSpec,
) {
	s.Storage, s.StorageClass = s.volumeOf(container, claimOf)
	s.Ephemeral = s.Storage.IsZero()
}

// volumeOf returns the size and storage class of a member's data volume, or zero values if the member does not have a
// volume of its own. claimOf returns the claim of a volume, or nil. If the data directory is unknown, the only mounted
// claim is the data volume.
func (s Source) volumeOf(container *corev1.Container, claimOf func(volume string) *corev1.PersistentVolumeClaimSpec) (
	resource.Quantity, *string,
) {
	dir := s.Options["data-dir"]
	var data *corev1.PersistentVolumeClaimSpec
	longest, several := 0, false
	for _, mount := range container.VolumeMounts {
		claim := claimOf(mount.Name)
		path := strings.TrimSuffix(mount.MountPath, "/")
		contains := dir == path || strings.HasPrefix(dir, path+"/")
		if strings.HasPrefix(dir, "/") && contains && len(path) >= longest {
			longest, data = len(path), claim // nil if another kind of volume contains the data
		} else if !strings.HasPrefix(dir, "/") && claim != nil {
			several = several || data != nil && data != claim
			data = claim
		}
	}
	if data == nil || several {
		return resource.Quantity{}, nil
	}
	return data.Resources.Requests[corev1.ResourceStorage], data.StorageClassName
}
