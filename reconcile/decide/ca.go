package decide

import (
	"fmt"
	"slices"
	"strings"
)

// CA is what is seen of the cluster's CA, by the fingerprints of certificates: SHA-256, as "openssl
// x509 -fingerprint -sha256" prints it. It is zero where the cluster runs without TLS.
type CA struct {
	// Secret is the CA that certificates would be issued from: the one in the Secret or, where none
	// is there and none is in use, a new one. Empty if there is none that can be used.
	Secret string `json:"secret,omitempty"`
	// Mounted are the CAs that pods are given to trust, beside their certificates; each once, in
	// any order.
	Mounted []string `json:"mounted,omitempty"`
	// Proven is the CA by which a member has answered: it shows a certificate of it, and takes
	// ours. Empty if none has.
	Proven string `json:"proven,omitempty"`
}

// short is the beginning of a fingerprint, enough to tell it from others.
func short(fingerprint string) string {
	const enough = len("01:23:45:67:89:AB:CD:EF")
	if len(fingerprint) <= enough {
		return fingerprint
	}
	return fingerprint[:enough] + ":…"
}

// CAInUse reports whether there are pods, which trust the CA that they started with, or may be at
// any moment.
func (s State) CAInUse() bool { return s.Objects.RunsReplicas > 0 || s.anyReplica(hasPod) }

// Distrusted says why nothing may be issued from the CA in the Secret: members trust another one,
// as far as can be told. Empty if nothing speaks against it.
func (s State) Distrusted() string {
	a, recorded := s.CA, s.Record.CA
	if a.Secret == "" || !s.CAInUse() {
		return ""
	}
	switch {
	case a.Proven != "" && a.Proven != a.Secret:
		return fmt.Sprintf("members answer by %s", short(a.Proven))
	case recorded != "" && recorded != a.Secret && a.Proven == a.Secret:
		return fmt.Sprintf("%s is on record, although members answer by the one in the Secret (if the record is an "+
			"old one, correct ca in it)", short(recorded))
	case recorded != "" && recorded != a.Secret:
		return fmt.Sprintf("%s is on record", short(recorded))
	case recorded == a.Secret || a.Proven == a.Secret:
		return ""
	}
	for _, mounted := range slices.Sorted(slices.Values(a.Mounted)) {
		if mounted != a.Secret {
			return fmt.Sprintf("pods are given %s to trust", short(mounted))
		}
	}
	return ""
}

// UnderCA is a record with the CA that it is to name as things stand.
func (s State) UnderCA(r Record) Record {
	r.CA = s.caToRecord(r.CA)
	return r
}

// caToRecord is the CA that a record is to name, given the one that it does. Once it names one, it
// does so as long as that may be in use; it takes one that is in use only from all who know it: the
// Secret, those that pods mount, and etcd.
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

// mountedAlone reports whether that CA, and no other, is what pods are given to trust.
func (a CA) mountedAlone(fingerprint string) bool {
	return len(a.Mounted) > 0 && !slices.ContainsFunc(a.Mounted,
		func(mounted string) bool { return mounted != fingerprint })
}

func caChanged(s State) (Decision, bool) {
	why := s.Distrusted()
	switch {
	case why == "":
		return Decision{}, false
	case s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPodThatStays):
		return wait(recheck, "Secret %s holds the CA %s, and %s; the new one takes its place once the pods are gone",
			s.caSecret(), short(s.CA.Secret), why)
	}
	if d, spoke := s.stopForCA(); spoke {
		return d, true
	}
	return block("Secret %s holds the CA %s, but %s; nothing is issued from it, "+
		"since members would cut each other off: restore the Secret from a backup, key and all, "+
		"or, to go on with the new one, stop all pods%s", s.caSecret(), short(s.CA.Secret), why, s.howToStop())
}

// stopForCA stops the pods if git declares that the cluster does not run: that is the way to
// another CA.
func (s State) stopForCA() (Decision, bool) {
	dataWouldGo := s.anyReplica(s.keepsGoingVolume) && !s.deletesVolumes()
	if s.toRun() || s.Objects.RunsReplicas == 0 || dataWouldGo || s.lacksLastBackup() {
		return Decision{}, false
	}
	return act(StopPods{}, "lifecycle %s: stop the pods of %s, which trust another CA than there is",
		s.Declared.Lifecycle, s.describeRemains())
}

// howToStop says how a person stops all pods, and what must be seen to before.
func (s State) howToStop() string {
	if s.anyReplica(s.keepsGoingVolume) {
		return fmt.Sprintf(", but not before the data of %s are copied: "+
			"volumes that are being deleted go with their pods", s.describeGoingVolumes())
	}
	if !s.hasStatefulSet() {
		return ", by kubectl delete pod " + strings.Join(s.podNames(), " ") + ": no StatefulSet makes them again"
	}
	return fmt.Sprintf(", by lifecycle: Stopped in git, or kubectl scale statefulset %s --replicas=0", s.Name)
}

// podNames are the names of the pods that are there.
func (s State) podNames() []string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if hasPod(r) {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return names
}

// caExpired reports whether the CA can be used no more for its age.
func (s State) caExpired() bool {
	return slices.ContainsFunc(s.Certificates, func(c Certificate) bool { return c.CA && c.Validity(s.Now) == Expired })
}

func (s State) caSecret() string { return s.Name + "-ca" }
