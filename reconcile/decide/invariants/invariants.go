package invariants

import (
	"fmt"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// Invariant is an invariant's documentation.
type Invariant struct {
	Name  string
	About string
}

// invariant is a documented check that every decision must pass in every state.
type invariant struct {
	Invariant
	broken func(decide.State, decide.Decision) string // returns the violation, or ""
}

// invariants lists the invariants about one state and one decision. Purity, independence of order, and the absence of
// dead ends involve several states, and are checked by tests.
var invariants = []invariant{
	{Invariant{"a decision is complete",
		"Every decision names its rule and has a one-line message. It has an action if and only if its verdict is " +
			"Act, and a recheck interval of at most one minute."},
		speaks},
	{Invariant{"guards hold",
		"Quorate does not act on a cluster that is orphaned, invalid, suspended or locked by another pass. It " +
			"also does not act if cluster IDs disagree, the CA is lost, or objects are foreign, unlabeled or " +
			"terminating. Expiring certificates of an orphaned or invalid cluster are still renewed from the " +
			"recorded CA. The only other exceptions are writing the custom resource, sealing members, and stopping " +
			"pods that must not run."},
		guardsHold},
	{Invariant{"never bootstrapped twice",
		"A cluster is bootstrapped only if it has no cluster ID, members, pods, volumes or StatefulSet. An " +
			"interrupted bootstrap is completed with its recorded initial members."},
		neverFoundedTwice},
	{Invariant{"the record is never weakened",
		"A sealed member stays sealed, and remains recorded until etcd no longer lists it. Only a started member is " +
			"sealed, unless the record was lost. The recorded CA is kept while pods may trust it."},
		recordOnlyTightens},
	{Invariant{"unknown membership is not changed",
		"If etcd returns no member list, Quorate does not add, promote, remove or seal members. It restarts single " +
			"pods only if they are failing or pending, and deletes volumes only if the whole cluster is deleted."},
		unknownChangesNothing},
	{Invariant{"quorum is preserved",
		"Voters are removed or promoted, and responding voters restarted, only if a majority of the resulting " +
			"voters then responds. The last voter is never removed. A member of a one- or two-member cluster is " +
			"restarted only if all voters respond."},
		quorumSurvives},
	{Invariant{"leadership is transferred first",
		"Unless the leader is the only voter, leadership is transferred to a responding voter before the leader is " +
			"removed or restarted."},
		leadershipIsTransferredFirst},
	{Invariant{"a majority decides which data is right",
		"While members may hold different data, responding members are not restarted. A voter whose data may be " +
			"right is removed only if a strict majority of voters reports the same hash. Leadership is not " +
			"transferred to an outvoted member, and learners copy only from a leader in that majority. A CORRUPT " +
			"alarm is disarmed only once all voters report the same hash."},
		majorityJudges},
	{Invariant{"one learner, or two joining together",
		"A second learner is added only if the first has started, is sealed and has a running pod. In addition, " +
			"every member must have allowed two learners from the start, all voters must be healthy with small " +
			"databases, and no downgrade may be in progress. Once two learners have joined together, the record " +
			"keeps that fact, and no learner is promoted while a voter reports a different member list."},
		fewLearners},
	{Invariant{"a volume outlives its member",
		"A volume is deleted only if etcd does not list its member, or if the spec requests deletion of the whole " +
			"cluster with its volumes and nothing is running."},
		volumeOutlivesMember},
	{Invariant{"copies are kept",
		"A voter is removed only if its data is proven lost or wrong, or if enough other members hold the data on " +
			"volumes that are kept: as many as declared, or a quorum of them. A pod is not restarted or stopped if " +
			"its volume would be deleted with it."},
		copiesKept},
	{Invariant{"deleted volumes are recorded",
		"Unless the whole cluster is deleted, a volume is deleted only if the record lists its member as removed."},
		volumesOnRecord},
	{Invariant{"MembersMissing requires missing voters",
		"MembersMissing applies only if etcd returns a member list that lacks a recorded voter: its slot is not " +
			"listed, or holds a different member."},
		missesTheMissing},
	{Invariant{"new members get an empty slot",
		"A member is added to a slot only if the previous member's volume is deleted, or is being deleted and its " +
			"pod is gone or terminating."},
		emptySlot},
	{Invariant{"members are added only while all respond",
		"A member is added only while all members respond. A learner that has just joined and whose pod is running " +
			"may still be unresponsive."},
		deadGoFirst},
	{Invariant{"lowest ordinal added, highest removed",
		"A new member gets the lowest free ordinal. A healthy voter is removed only if it has the highest ordinal."},
		lowestInHighestOut},
	{Invariant{"actions target observed IDs",
		"Quorate removes, promotes, restarts or deletes only members, pods and volumes whose ID or UID it has " +
			"observed."},
		hitsWhatWasSeen},
	{Invariant{"one step at a time",
		"A rollout moves to the declared version, which is at most one minor version away from the running one. A " +
			"responding pod is restarted only for a rollout, and only while all other members respond."},
		oneStepAtATime},
	{Invariant{"deleted only on request",
		"The objects of a cluster are deleted only if its lifecycle is Deleted and all its pods are gone."},
		deletedAsDeclared},
	{Invariant{"downgraded only on request",
		"A downgrade to the next lower minor version is enabled only if the spec declares that version, or " +
			"declares an upgrade before which etcd must write a snapshot. It is canceled only if the spec does not " +
			"declare that version, or if a member still has to join."},
		downgradedAsDeclared},
	{Invariant{"one CA",
		"While members trust a CA other than the one in the Secret, Quorate only writes the custom resource, seals " +
			"members or stops pods."},
		oneCA},
	{Invariant{"members stay while fields are rewritten",
		"While admission rewrites a field that security or quorum depends on, Quorate does not add or remove " +
			"members, restart single pods or delete volumes. This applies to clusters that should run, unless " +
			"their members are healthy with the new value."},
		fieldsAsApplied},
	{Invariant{"Done means nothing is left to do",
		"A decision is Done only if the cluster is orphaned or suspended, if it should not run and nothing is " +
			"running, or if every member is a sealed, healthy voter that matches the spec."},
		doneIsDone},
}

var everyInvariant = slices.Concat(invariants, rolloutInvariants, backupInvariants, restoreInvariants,
	recoveryInvariants, alarmInvariants, adoptionInvariants, defragmentationInvariants)

// All lists the invariants that Broken checks.
func All() []Invariant {
	var list []Invariant
	for _, l := range everyInvariant {
		list = append(list, l.Invariant)
	}
	return list
}

// Broken returns the invariants that decision d violates in state s, each with its violation.
func Broken(s decide.State, d decide.Decision) []string {
	var broken []string
	for _, l := range everyInvariant {
		if what := l.broken(s, d); what != "" {
			broken = append(broken, l.Name+": "+what)
		}
	}
	return broken
}

func speaks(_ decide.State, d decide.Decision) string {
	switch {
	case d.Rule == "" || d.Message == "":
		return "the rule or the message is missing"
	case !oneLine(d.Message):
		return "the message has more than one line"
	case (d.Verdict == decide.Act) != (d.Action != nil):
		return "the verdict and the action do not match"
	case d.Recheck < 0 || d.Recheck > time.Minute:
		return "the recheck interval is out of range"
	}
	return ""
}

func oneLine(message string) bool {
	for _, r := range message {
		if r == '\n' || r == '\r' {
			return false
		}
	}
	return true
}

func guardsHold(s decide.State, d decide.Decision) string {
	if d.Verdict != decide.Act {
		return ""
	}
	_, declares := d.Action.(decide.Declare)
	_, seals := d.Action.(decide.Seal)
	_, renews := d.Action.(decide.RenewCertificates)
	_, stopsLost := d.Action.(decide.StopReplicas)
	switch {
	case renews && !wearsOut(s):
		return "renews certificates that do not expire soon"
	case renews && (s.Record.CA == "" || s.Record.CA != s.CA.Secret):
		return "issues certificates from a CA that is not recorded"
	case s.Declared.Orphaned != "" && !renews:
		return "acts on an orphaned cluster"
	case len(s.Declared.Problems) > 0 && !renews:
		return "acts on an invalid spec"
	case len(s.Objects.Foreign) > 0:
		return "acts although there are foreign objects"
	case len(s.Objects.Relabelled) > 0:
		return "acts although objects have lost their labels"
	case s.LockHolder != "":
		return "acts while another pass holds the lease"
	case declares:
		return ""
	case s.Declared.Suspended:
		return "acts on a suspended cluster"
	case stopsLost:
		return ""
	case cluster(s) == ambiguous:
		return "acts although cluster IDs disagree"
	case foundsAnother(s):
		return "acts on a cluster other than the one that was bootstrapped"
	case len(s.Objects.Irreplaceable) > 0 && !seals && d.Action != decide.Action(decide.StopPods{}):
		return "acts although the CA is lost"
	case len(s.Objects.Terminating) > 0 && !seals:
		return "acts while objects are terminating"
	}
	return ""
}

// ambiguous is the cluster of a state with contradictory cluster IDs.
const ambiguous = ^decide.ID(0)

// cluster returns the known cluster ID, zero if it is unknown, or ambiguous if the sources disagree.
func cluster(s decide.State) decide.ID {
	said := []decide.ID{s.Record.ClusterID, s.ReportedClusterID, s.Membership.ClusterID}
	for _, r := range s.Replicas {
		said = append(said, r.ClusterID)
	}
	var one decide.ID
	for _, id := range said {
		switch {
		case id == 0 || id == one:
		case one == 0:
			one = id
		default:
			return ambiguous
		}
	}
	return one
}

func oneStepAtATime(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.StartRollout:
		return wrongStep(s, a)
	case decide.RestartReplica:
		return wrongRestart(s, a)
	}
	return ""
}

// wrongStep returns the problem with a rollout: it does not match the spec, or skips a minor version.
func wrongStep(s decide.State, a decide.StartRollout) string {
	if a.Version != s.Declared.Version || a.SpecHash != s.Declared.SpecHash {
		return "rolls out a version or template that is not declared"
	}
	major, minor, _ := minorOf(a.Version)
	for _, m := range s.Membership.Members {
		runsMajor, runsMinor, known := minorOf(m.Version)
		skips := major != runsMajor || minor > runsMinor+1 || minor < runsMinor-1
		if m.Answers && known && skips {
			return fmt.Sprintf("moves from %s to %s in one step", m.Version, a.Version)
		}
	}
	return ""
}

// wrongRestart returns the problem with restarting a serving pod: it already matches the spec, or new pods would not
// match it, or another member does not respond.
func wrongRestart(s decide.State, a decide.RestartReplica) string {
	r := replicaAt(s, a.Ordinal)
	if member, _ := memberNamed(s, a.Ordinal); !member.Answers {
		return ""
	}
	switch {
	case r.PodVersion == s.Declared.Version && r.PodSpecHash == s.Declared.SpecHash:
		return "restarts a pod that matches the spec"
	case s.Objects.RunsVersion != s.Declared.Version || s.Objects.RunsHash != s.Declared.SpecHash:
		return "restarts a pod that would be recreated from an outdated template"
	case !allAnswer(s.Membership.Members):
		return "restarts a member while another does not respond"
	}
	return ""
}

func doneIsDone(s decide.State, d decide.Decision) string {
	switch {
	case d.Verdict != decide.Done, s.Declared.Suspended, s.Declared.Orphaned != "":
		return ""
	case s.Declared.Lifecycle != decide.Running:
		return notGone(s)
	case s.Declared.Adoption.Abandon && len(s.Record.Members)+len(s.Record.Guests)+len(s.Replicas) == 0:
		return ""
	case len(s.Objects.Drift) > 0:
		return "objects are missing or changed"
	case !s.Membership.Known || cluster(s) != s.Record.ClusterID || s.Record.ClusterID == 0:
		return "the member list or the cluster ID is unknown"
	case len(s.Membership.Members)-guests(s) != wanted(s) || len(s.Record.Members) != wanted(s):
		return "the number of members differs from the declared number"
	case s.Objects.RunsVersion != s.Declared.Version || s.Objects.RunsHash != s.Declared.SpecHash:
		return "new pods would not match the spec"
	}
	for _, m := range s.Membership.Members {
		if what := notAsDeclared(s, m); what != "" {
			return m.Name + " " + what
		}
	}
	return ""
}

// notAsDeclared returns how a member differs from a sealed, healthy voter that matches the spec, or "".
func notAsDeclared(s decide.State, m decide.Member) string {
	healthyVoter := m.Answers && m.Started && !m.Learner && len(m.Alarms) == 0
	ordinal, ours := slotOf(s, m)
	recorded, _ := recordedAt(s.Record, ordinal)
	r := replicaAt(s, ordinal)
	madeOtherwise := r.PodVersion != s.Declared.Version || r.PodSpecHash != s.Declared.SpecHash
	switch {
	case isGuest(s, m) && healthyVoter:
		return ""
	case !ours || !healthyVoter || recorded.Mode != decide.Sealed || r.Pod != decide.PodReady:
		return "is not a sealed, healthy voter"
	case r.VolumeTerminating || r.VolumeUID == "" && recorded.VolumeUID != "":
		return "is on a volume that is being deleted"
	case ordinal >= s.Declared.Replicas || r.PodVersion+r.PodSpecHash != "" && madeOtherwise:
		return "does not match the spec"
	}
	return ""
}

// notGone returns the remains of a cluster that should not run.
func notGone(s decide.State) string {
	for _, r := range s.Replicas {
		switch {
		case r.Pod != decide.PodAbsent:
			return "a pod exists although the cluster should not run"
		case r.VolumeUID != "" && s.Declared.Lifecycle == decide.Deleted && s.Declared.Retention == decide.Delete:
			return "a volume exists although it should be deleted"
		}
	}
	switch {
	case s.Objects.RunsReplicas > 0:
		return "the StatefulSet may start pods although the cluster should not run"
	case s.Declared.Lifecycle == decide.Deleted && len(s.Objects.Remaining) > 0:
		return "an object exists although it should be deleted"
	}
	return ""
}
