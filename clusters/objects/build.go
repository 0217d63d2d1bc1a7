package objects

import (
	"fmt"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Input contains everything from which the objects of a cluster are built.
type Input struct {
	// Cluster has its defaults applied, its UID set, and normalized values (see Normalize).
	Cluster *v1alpha1.EtcdCluster
	// Declared is the declared pod template, or zero to derive it from Cluster.
	Declared Template
	// Record lists the members and the mode in which each of them may start.
	Record decide.Record
	// Voters is the number of voters that etcd lists, except guests, or zero if unknown. Guests is the number of
	// guests.
	Voters, Guests int
	// Learners is the number of learners that etcd lists.
	Learners int
	// MinAvailable is the minAvailable of the live PodDisruptionBudget. It is kept while etcd's member list is
	// unknown, because that list may include a learner.
	MinAvailable int
	// Peers is etcd's member list as peer URLs by name, including the joining member, or nil if unknown.
	Peers map[string][]string
	// GuestEndpoints are the client URLs of guests. Backups query them, too, because a majority of the voters must
	// return the member list.
	GuestEndpoints []string
	// Leads is whether the live client Service routes to members.
	Leads bool
	// Kept contains Quorate's fields of the live StatefulSet, as an apply configuration, while new pods still use the
	// previous template. If it is nil, new pods follow the spec.
	Kept any
	// Runs is the template of the live StatefulSet, or zero.
	Runs Template
	// Pods are the templates of the existing pods.
	Pods []Template
	// Live is the data of the live ConfigMap, which is the only source for the configuration of pods with an outdated
	// template.
	Live map[string]string
	// WithoutSecrets excludes the Secrets, whose content may be missing.
	WithoutSecrets bool
	// Certificates are set unless TLS is disabled.
	Certificates Certificates
	// BackupImage is the image of the backup pods, or empty if it is unknown. If it is empty, the backup objects are
	// left unchanged.
	BackupImage string
	// WithoutDrill leaves the drill objects unchanged.
	WithoutDrill bool
}

// Object is an object to apply.
type Object struct {
	Identity
	// Apply is the apply configuration. Its type is one of *core/v1.ConfigMapApplyConfiguration,
	// *core/v1.SecretApplyConfiguration, *core/v1.ServiceApplyConfiguration,
	// *networking/v1.NetworkPolicyApplyConfiguration, *policy/v1.PodDisruptionBudgetApplyConfiguration,
	// *batch/v1.CronJobApplyConfiguration, *apps/v1.StatefulSetApplyConfiguration.
	Apply any
}

// Build returns the objects of the cluster in the order in which to apply them: pods follow the objects that they
// require.
func Build(in Input) ([]Object, error) {
	c := in.Cluster
	if c.UID == "" {
		return nil, fmt.Errorf("build the objects of %s/%s: the custom resource has no UID yet", c.Namespace, c.Name)
	}
	if in.Record.Token == "" || in.Record.Empty() {
		return nil, fmt.Errorf("build the objects of %s/%s: the record has no token or no members",
			c.Namespace, c.Name)
	}
	configMap, err := configMap(in)
	if err != nil {
		return nil, fmt.Errorf("build the objects of %s/%s: %w", c.Namespace, c.Name, err)
	}
	statefulSet, err := statefulSet(in)
	if err != nil {
		return nil, fmt.Errorf("build the objects of %s/%s: %w", c.Namespace, c.Name, err)
	}
	names := NamesOf(c.Name)
	list := []Object{{Identity{"ConfigMap", names.ConfigMap}, configMap}}
	if secure(c) && !in.WithoutSecrets {
		secrets, err := secrets(in)
		if err != nil {
			return nil, fmt.Errorf("build the objects of %s/%s: %w", c.Namespace, c.Name, err)
		}
		list = append(list, secrets...)
	}
	if c.Spec.NetworkPolicy != nil {
		list = append(list, Object{names.Policy(), networkPolicy(c)})
	}
	list = append(list,
		Object{Identity{"Service", names.Service}, memberService(c)},
		Object{Identity{"Service", names.ClientService}, clientService(in)},
		Object{Identity{"PodDisruptionBudget", names.PodDisruptionBudget}, disruptionBudget(in)},
	)
	list = append(list, Object{Identity{"StatefulSet", names.StatefulSet}, statefulSet})
	if backups := backupCronJob(in); backups != nil { // last, so that a rejection does not stop the others
		list = append(list, Object{names.Backups(), backups})
	}
	if drill := drillCronJob(in); drill != nil {
		list = append(list, Object{names.Drills(), drill})
	}
	return list, nil
}

// owner returns the owner reference that makes Kubernetes delete an object together with the custom resource.
func owner(c *v1alpha1.EtcdCluster) *applymetav1.OwnerReferenceApplyConfiguration {
	return applymetav1.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind(v1alpha1.Kind).
		WithName(c.Name).
		WithUID(c.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}
