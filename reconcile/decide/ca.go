package decide

import (
	"fmt"
	"slices"
	"strings"
)

// CA is the observed state of the cluster's CA, as SHA-256 fingerprints of certificates in the format of "openssl x509
// -fingerprint -sha256". It is zero if the cluster runs without TLS.
type CA struct {
	// Secret is the CA from which certificates would be issued: the CA in the Secret or, if it is missing and no CA is
	// in use, a new CA. It is empty if that CA is not usable.
	Secret string `json:"secret,omitempty"`
	// Mounted lists the CAs that pods mount with their certificates, without duplicates, in any order.
	Mounted []string `json:"mounted,omitempty"`
	// Proven is the CA of a member that responded: it issued the member's certificate, and the member accepted
	// Quorate's certificate. It is empty if no member responded.
	Proven string `json:"proven,omitempty"`
}

// short returns the beginning of a fingerprint, long enough to identify it.
func short(fingerprint string) string {
	const enough = len("01:23:45:67:89:AB:CD:EF")
	if len(fingerprint) <= enough {
		return fingerprint
	}
	return fingerprint[:enough] + ":…"
}

// CAInUse reports whether pods exist, or may be created at any moment. Pods trust the CA with which they started.
func (s State) CAInUse() bool { return s.Objects.RunsReplicas > 0 || s.anyReplica(hasPod) }

// Distrusted returns why certificates must not be issued from the CA in the Secret: members seem to trust a different
// CA. It returns "" if there is no sign of a different CA.
func (s State) Distrusted() string {
	a, recorded := s.CA, s.Record.CA
	if a.Secret == "" || !s.CAInUse() {
		return ""
	}
	switch {
	case a.Proven != "" && a.Proven != a.Secret:
		return fmt.Sprintf("members use CA %s", short(a.Proven))
	case recorded != "" && recorded != a.Secret && a.Proven == a.Secret:
		return fmt.Sprintf("CA %s is recorded, although members use the CA in the Secret (if the record is "+
			"outdated, correct its ca field)", short(recorded))
	case recorded != "" && recorded != a.Secret:
		return fmt.Sprintf("CA %s is recorded", short(recorded))
	case recorded == a.Secret || a.Proven == a.Secret:
		return ""
	}
	for _, mounted := range slices.Sorted(slices.Values(a.Mounted)) {
		if mounted != a.Secret {
			return fmt.Sprintf("pods mount CA %s", short(mounted))
		}
	}
	return ""
}

// UnderCA returns r with the CA that the record must name in the current state.
func (s State) UnderCA(r Record) Record {
	r.CA = s.caToRecord(r.CA)
	return r
}

// caToRecord returns the CA that a record must name, given the currently recorded CA. A recorded CA is kept as long as
// it may be in use. A CA in use is recorded only if all sources agree on it: the Secret, the pods' mounts, and etcd.
func (s State) caToRecord(recorded string) string {
	a := s.CA
	switch {
	case a.Secret == "":
		return recorded
	case !s.CAInUse():
		return a.Secret
	case recorded != "":
		return recorded
	case s.Membership.Known && a.Proven == a.Secret && s.Distrusted() == "" && a.mountedAlone(a.Secret):
		return a.Secret
	}
	return ""
}

// mountedAlone reports whether pods mount the given CA and no other CA.
func (a CA) mountedAlone(fingerprint string) bool {
	return len(a.Mounted) > 0 && !slices.ContainsFunc(a.Mounted,
		func(mounted string) bool { return mounted != fingerprint })
}

func caChanged(s State) (Decision, bool) {
	why := s.Distrusted()
	switch {
	case why == "":
		return Decision{}, false
	case s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPodThatStays) && !s.mayHaveGuests():
		return wait(recheck, "Secret %s contains CA %s, but %s; the CA in the Secret will be used once the pods "+
			"are gone",
			s.caSecret(), short(s.CA.Secret), why)
	}
	if d, spoke := s.stopForCA(); spoke {
		return d, true
	}
	if s.mayHaveGuests() {
		remedy := "Restore the Secret from a backup, or delete it, so that the CA in spec.adopt.caSecretName is " +
			"taken over again"
		if s.CA.Proven == s.CA.Secret {
			remedy = "Correct the record"
		}
		return block("Secret %s contains CA %s, but %s. %s. Do not stop pods: the guests need their votes",
			s.caSecret(), short(s.CA.Secret), why, remedy)
	}
	return block("Secret %s contains CA %s, but %s. Nothing is issued from the CA in the Secret, "+
		"because members would reject each other. Restore the Secret from a backup, including its key, "+
		"or, to switch to the new CA, stop all pods%s", s.caSecret(), short(s.CA.Secret), why, s.howToStop())
}

// stopForCA stops the pods if the cluster should not run, which allows a switch to a different CA.
func (s State) stopForCA() (Decision, bool) {
	dataWouldGo := s.anyReplica(s.keepsGoingVolume) && !s.deletesVolumes()
	if s.toRun() || s.Objects.RunsReplicas == 0 || dataWouldGo || s.lacksLastBackup() || s.stillJoined() != "" {
		return Decision{}, false
	}
	return act(StopPods{}, "lifecycle %s: stopping the pods of %s, which trust a CA that can no longer be used",
		s.Declared.Lifecycle, s.describeRemains())
}

// howToStop returns how to stop all pods manually, and what to do first.
func (s State) howToStop() string {
	if s.anyReplica(s.keepsGoingVolume) {
		return fmt.Sprintf(", but first copy the data of %s: "+
			"volumes that are being deleted are lost with their pods", s.describeGoingVolumes())
	}
	if !s.hasStatefulSet() {
		return fmt.Sprintf(" (kubectl delete pod %s; without a StatefulSet, they are not recreated)",
			strings.Join(s.podNames(), " "))
	}
	return fmt.Sprintf(" (lifecycle: Stopped in git, or kubectl scale statefulset %s --replicas=0)", s.Name)
}

// podNames returns the names of the existing pods.
func (s State) podNames() []string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if hasPod(r) {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return names
}

// caExpired reports whether the CA has expired.
func (s State) caExpired() bool {
	return slices.ContainsFunc(s.Certificates, func(c Certificate) bool { return c.CA && c.Validity(s.Now) == Expired })
}

func (s State) caSecret() string { return s.Name + "-ca" }
