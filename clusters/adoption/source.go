// Package adoption recognizes etcd clusters that other tools run in StatefulSets, and drafts declarations that adopt
// them.
package adoption

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Source is an etcd cluster that a StatefulSet runs, as far as the StatefulSet shows it. What is set in other objects,
// such as a ConfigMap, is not included.
type Source struct {
	Namespace, Name string
	// Owner is the object that controls the StatefulSet, such as "EtcdCluster etcd of operator.etcd.io/v1alpha1", or the
	// Helm release that installed it, or "".
	Owner string
	// Tool is the tool that manages the StatefulSet.
	Tool Tool
	// Members is the number of pods.
	Members int
	// Service is the headless Service that gives the pods their names.
	Service string
	// ClientPort is the port for clients.
	ClientPort int
	// TLS is whether clients use TLS, or TLSUnknown if the options that determine this are not in the StatefulSet.
	TLS TLS
	// Version is the version in the tag of etcd's image, such as 3.6.16, or "".
	Version string
	// Storage is the size of each member's volume, or zero if members do not have volumes of their own.
	Storage resource.Quantity
	// StorageClass is the class of these volumes, or nil for the default class.
	StorageClass *string
	// Options are etcd's options, by their command-line names, from the command, its arguments and the environment.
	Options map[string]string
	// Deletes is set if the StatefulSet deletes volumes when it is scaled down or deleted.
	Deletes bool
}

// TLS is whether clients use TLS.
type TLS int

// The values of TLS.
const (
	TLSUnknown TLS = iota
	WithTLS
	WithoutTLS
)

// Describe returns the etcd cluster that a StatefulSet runs. It returns an error if no container runs etcd.
func Describe(set *appsv1.StatefulSet) (Source, error) {
	container := etcdOf(set.Spec.Template.Spec.Containers)
	if container == nil {
		return Source{}, fmt.Errorf("StatefulSet %s/%s does not run etcd: neither the name nor the image of a container "+
			"contains etcd", set.Namespace, set.Name)
	}
	s := Source{Namespace: set.Namespace, Name: set.Name, Owner: ownerOf(set), Service: set.Spec.ServiceName, Members: 1,
		Version: versionIn(container.Image), Options: optionsOf(container), ClientPort: defaultClientPort}
	if set.Spec.Replicas != nil {
		s.Members = int(*set.Spec.Replicas)
	}
	s.Tool = toolOf(set, container)
	urls := s.Options["advertise-client-urls"]
	if urls == "" {
		urls = s.Options["listen-client-urls"]
	}
	switch {
	case strings.HasPrefix(urls, "https://") || s.Options["cert-file"] != "":
		s.TLS = WithTLS
	case urls != "":
		s.TLS = WithoutTLS
	}
	if port := portInURL.FindStringSubmatch(urls); port != nil {
		s.ClientPort, _ = strconv.Atoi(port[1])
	}
	s.Storage, s.StorageClass = volumeOf(set, container)
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		s.Deletes = policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType ||
			policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return s, nil
}

const defaultClientPort = 2379

// portInURL matches the port of the first URL in a list. The host may contain variables.
var portInURL = regexp.MustCompile(`^[^,]*?:([0-9]{1,5})(?:[/,]|$)`)

// mostEndpoints is the maximum number of endpoints in a declaration.
const mostEndpoints = 15

// endpoints returns the client URL of each member: the DNS names of the StatefulSet's pods.
func (s Source) endpoints(scheme string) []string {
	var urls []string
	for i := range min(s.Members, mostEndpoints) {
		urls = append(urls, fmt.Sprintf("%s://%s-%d.%s.%s.svc:%d", scheme, s.Name, i, s.Service, s.Namespace, s.ClientPort))
	}
	return urls
}

// etcdOf returns the container that runs etcd, or nil.
func etcdOf(containers []corev1.Container) *corev1.Container {
	byName := func(c corev1.Container) bool { return c.Name == "etcd" }
	byImage := func(c corev1.Container) bool {
		path, _, _ := strings.Cut(c.Image, "@")
		return strings.Contains(path[strings.LastIndex(path, "/")+1:], "etcd")
	}
	for _, runsEtcd := range []func(corev1.Container) bool{byName, byImage} {
		for i := range containers {
			if runsEtcd(containers[i]) {
				return &containers[i]
			}
		}
	}
	return nil
}

// ownerOf describes the owner of a StatefulSet, or returns "".
func ownerOf(set *appsv1.StatefulSet) string {
	if owner := metav1.GetControllerOf(set); owner != nil {
		return fmt.Sprintf("%s %s of %s", owner.Kind, owner.Name, owner.APIVersion)
	}
	if release := set.Annotations["meta.helm.sh/release-name"]; release != "" {
		return "Helm release " + release
	}
	return ""
}

// versionInTag matches the version at the beginning of an image tag.
var versionInTag = regexp.MustCompile(`:v?(3\.[0-9]{1,2}\.[0-9]{1,3})(?:[-+_][^:/]*)?$`)

func versionIn(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if match := versionInTag.FindStringSubmatch(image); match != nil {
		return match[1]
	}
	return ""
}

// option matches an option on a command line or in a script.
var option = regexp.MustCompile(`^--?([a-z][-a-z0-9]*)(?:=(.*))?$`)

// optionsOf returns etcd's options in a container. Values that the container takes from other objects are not included.
// As in etcd, options on the command line have precedence.
func optionsOf(c *corev1.Container) map[string]string {
	options := map[string]string{}
	for _, variable := range c.Env {
		if name, is := strings.CutPrefix(variable.Name, "ETCD_"); is && variable.Value != "" {
			options[strings.ReplaceAll(strings.ToLower(name), "_", "-")] = variable.Value
		}
	}
	words := strings.Fields(strings.Join(append(append([]string{}, c.Command...), c.Args...), "\n"))
	for i, word := range words {
		match := option.FindStringSubmatch(strings.Trim(word, `"'\`))
		if match == nil {
			continue
		}
		value := match[2]
		if !strings.Contains(word, "=") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			value = words[i+1]
		}
		if !strings.Contains(word, "=") && value == "" {
			value = "true"
		}
		options[match[1]] = strings.Trim(value, `"'\`)
	}
	return options
}

// volumeOf returns the size and the class of the volume on which a member keeps its data, or zero if it does not have a
// volume of its own.
func volumeOf(set *appsv1.StatefulSet, container *corev1.Container) (size resource.Quantity, class *string) {
	for _, claim := range set.Spec.VolumeClaimTemplates {
		for _, mount := range container.VolumeMounts {
			if mount.Name == claim.Name {
				return claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Spec.StorageClassName
			}
		}
	}
	return resource.Quantity{}, nil
}
