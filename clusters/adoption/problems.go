package adoption

import (
	"fmt"
	"strconv"

	"quorate.dev/quorate/reconcile/decide"
)

// Problems returns the problems, visible in Kubernetes, that prevent the adoption of the source or make it unsafe.
func (s Source) Problems(plan Plan) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case s.Members == 0:
		add("no pods run etcd. Scale the cluster up, or copy its volumes with spec.restore.from.claims")
	case len(s.Hosts) == 0:
		add("its pods do not have DNS names that begin with the pod names (a headless Service provides them). Copy " +
			"the cluster with spec.restore.from.etcd instead")
	}
	if s.Members > decide.MaxGuests {
		add("%d pods run etcd, but at most %d members can be adopted. Copy the cluster with spec.restore.from.etcd "+
			"instead", s.Members, decide.MaxGuests)
	}
	if s.Mixed {
		add("its pods use different client ports or options for TLS. Make these options the same first")
	}
	if s.isOn("force-new-cluster") {
		add("its members set force-new-cluster: a restart would remove all other members. Remove this option first")
	}
	if s.Unread != nil {
		add("the object that controls the StatefulSet could not be read, so its settings are unknown: %v", s.Unread)
	}
	problems = append(problems, s.Custom.problems()...)
	if plan.Name == s.Name {
		add("objects named %s already belong to the source. Choose a different name for the new cluster", s.Name)
	}
	return append(problems, s.problemsOfTLS(plan)...)
}

// problemsOfTLS returns the problems with certificates.
func (s Source) problemsOfTLS(plan Plan) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case s.isOn("auto-tls") && s.Options["cert-file"] == "",
		s.isOn("peer-auto-tls") && s.Options["peer-cert-file"] == "":
		add("its members create their own certificates (auto-tls, peer-auto-tls), which other members cannot verify. " +
			"Copy the cluster with spec.restore.from.etcd instead")
	case s.TLS == WithTLS && plan.CASecretName == "":
		add("its members use TLS. Create a Secret from the certificate and private key of their CA (kubectl create " +
			"secret tls), and set --ca-secret to its name. If the private key is lost, copy the cluster with " +
			"spec.restore.from.etcd instead")
	case s.TLS == WithoutTLS && (s.Options["peer-cert-file"] != "" || s.isOn("peer-client-cert-auth")):
		add("its members use TLS only for peers. Copy the cluster with spec.restore.from.etcd instead")
	case s.TLS == WithoutTLS && plan.CASecretName != "":
		add("its members do not use TLS. Omit --ca-secret")
	}
	for _, name := range []string{"peer-cert-allowed-cn", "peer-cert-allowed-hostname"} {
		if s.Options[name] != "" {
			add("its members set %s and would reject the replicas' certificates. Remove this option from their "+
				"configuration", name)
		}
	}
	verifies := s.isOn("peer-client-cert-auth") || s.Options["peer-trusted-ca-file"] != ""
	if s.Options["peer-cert-file"] != "" && !verifies && !s.Elsewhere {
		add("peer-client-cert-auth is off, so anyone who can reach the peer port can become a member. Turn it on")
	}
	return problems
}

// isOn reports whether a boolean etcd option is on, or has a value that cannot be parsed.
func (s Source) isOn(name string) bool {
	value, set := s.Options[name]
	on, err := strconv.ParseBool(value)
	return set && (on || err != nil)
}

// Steps returns the steps that the user must take before pushing the declaration, in order.
func (s Source) Steps(plan Plan, dropped Dropped) []string {
	steps := []string{s.Tool.Stop + " Until the last guest (member of the source) has left, no other tool may add or " +
		"remove members.", "Take a backup."}
	steps = append(steps, s.stepsToKeepData()...)
	steps = append(steps, s.stepsToCompare(dropped)...)
	if plan.CASecretName != "" && !s.isOn("client-cert-auth") && s.Options["trusted-ca-file"] == "" && !s.Elsewhere {
		steps = append(steps, "The source accepts clients without certificates, but replicas do not. Give each client "+
			"a certificate from the CA.")
	}
	if len(s.Patterns) > 0 {
		var patterns []string
		for _, pattern := range s.Patterns {
			patterns = append(patterns, fmt.Sprintf("%s:%d", pattern, s.ClientPort))
		}
		steps = append(steps, "Allow the endpoints: add "+decide.Enumerate(patterns)+
			" to sourceDefaults.policy.adoptions in the configuration file.")
	}
	return steps
}

// stepsToKeepData returns the steps without which the source may lose data.
func (s Source) stepsToKeepData() (steps []string) {
	if s.Ephemeral {
		members := "the members"
		if !s.Storage.IsZero() {
			members = "some members"
		}
		steps = append(steps, "No data volume was found for "+members+". If they do not have volumes of their own, a "+
			"member whose pod is deleted loses its data. Do not drain nodes while guests remain.")
	}
	if c := s.Custom; c != nil {
		lost := "the guests' pods"
		if c.Kind.Tool.DeletesVolumes {
			lost += " and volumes"
		}
		steps = append(steps, fmt.Sprintf("While guests remain, do not delete %s %s or its CustomResourceDefinition. "+
			"This would also delete %s.", c.Kind.Name, c.Name, lost))
	}
	if s.Deletes {
		steps = append(steps, "The StatefulSet deletes volumes when it is scaled down or deleted. To keep them, set "+
			"whenScaled and whenDeleted in persistentVolumeClaimRetentionPolicy to Retain.")
	}
	return steps
}

// stepsToCompare returns the steps for settings that may be missing from the declaration, or have other values there.
func (s Source) stepsToCompare(dropped Dropped) (steps []string) {
	if s.Elsewhere {
		steps = append(steps, "Other objects or files set etcd's options. Compare them with the declaration, in "+
			"particular the quota, compaction, and TLS on the peer port.")
	}
	if len(s.Differences) > 0 {
		steps = append(steps, "These settings differ between the pods: "+decide.Enumerate(s.Differences)+". The "+
			"declaration has those of the first pod by name, except that it has the largest quota and volume.")
	}
	if len(dropped.Options) > 0 {
		steps = append(steps, "These options are not carried over, because a declaration does not accept them or "+
			"their values: "+decide.Enumerate(dropped.Options)+". Check that nothing depends on them.")
	}
	if len(dropped.PodFields) > 0 {
		steps = append(steps, "These pod fields are not carried over: "+decide.Enumerate(dropped.PodFields)+". "+
			"Replicas are spread over zones and nodes as far as possible. For other requirements, declare spec.pod.")
	}
	return steps
}

// ReleaseSteps returns the steps that the user must take to release each guest.
func (s Source) ReleaseSteps() []string {
	if !s.Tool.Rejoins {
		return nil
	}
	return []string{"Scale the StatefulSet down by one. Otherwise, the removed member rejoins while its pod runs.",
		"Release the guest whose pod has stopped."}
}
