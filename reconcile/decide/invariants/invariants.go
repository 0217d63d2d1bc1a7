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

// invariant is something that no decision may do in any state.
type invariant struct {
	Invariant
	broken func(decide.State, decide.Decision) string // returns the violation, or ""
}

// invariants lists the invariants about one state and one decision. Purity, independence of order, and the absence of
// dead ends concern many states; tests check those.
var invariants = []invariant{
	{Invariant{"speaks", "A decision has a rule, a message of one line, and an action exactly when it acts."}, speaks},
	{Invariant{"guards hold",
		"Nothing is done to an orphan, on a broken or suspended declaration, beside foreign objects, between two " +
			"cluster IDs, or under another's lease; except that certificates that wear out are reissued from the CA " +
			"on record for an orphan and on a broken declaration, and that pods of a lost cluster are stopped between " +
			"its ID and that of the new one."}, guardsHold},
	{Invariant{"never founded twice",
		"A cluster with any trace of having run is not founded; a founding begun is finished as it was begun."},
		neverFoundedTwice},
	{Invariant{"the record only tightens",
		"A sealed member stays sealed, and recorded until etcd lists it no longer; only a member that has started is " +
			"sealed, unless its record is lost. The CA on record stays while pods may trust it."}, recordOnlyTightens},
	{Invariant{"unknown changes nothing",
		"With the membership unknown, no member is changed or sealed, no pod that runs is deleted, and no volume " +
			"unless the whole cluster is."}, unknownChangesNothing},
	{Invariant{"quorum survives",
		"No voter is taken away unless the rest holds quorum of the membership after it, and none added without; " +
			"never the last one removed. Restarting one of less than three needs all."}, quorumSurvives},
	{Invariant{"leadership is transferred first",
		"Leadership is transferred to a voter that answers before the leader is removed or restarted."},
		leadershipIsTransferredFirst},
	{Invariant{"a majority judges data",
		"While members may hold different data, none loses its place, its pod or its copy to another, and no alarm " +
			"about it is taken back, but by a strict majority of equal hashes."}, majorityJudges},
	{Invariant{"one learner, or two together",
		"No member is added beside a learner; but a second one is beside a first that has joined, and runs on its " +
			"data or not at all, where every member has always allowed two, and no voter has much data. Once two " +
			"have joined so, none is promoted while a voter believes in another list, and that they have stays on " +
			"record."},
		fewLearners},
	{Invariant{"a volume outlives its member",
		"A volume is deleted only if etcd does not list its member, or if git declares the whole cluster deleted, " +
			"with its volumes, and nothing runs."}, volumeOutlivesMember},
	{Invariant{"copies are kept",
		"A voter is given up only if it is proven lost, or while as many others as declared, or a quorum of them, " +
			"hold the data on volumes that stay; no pod is restarted whose volume would go with it."}, copiesKept},
	{Invariant{"volumes go on record",
		"A volume of a cluster that goes on is deleted only if the record says that its member was removed."},
		volumesOnRecord},
	{Invariant{"only the missing are missed",
		"MembersMissing needs a list that is known, and a voter on record that it does not hold: " +
			"its slot is not listed, or another member is in it."}, missesTheMissing},
	{Invariant{"an empty slot", "A member is added only where no volume is left of the one before."}, emptySlot},
	{Invariant{"the dead go first",
		"No member is added while one does not answer, unless that is a learner that has just joined, and runs."},
		deadGoFirst},
	{Invariant{"lowest in, highest out",
		"The lowest free ordinal is added; a healthy voter is removed only if its ordinal is the highest."},
		lowestInHighestOut},
	{Invariant{"hits what was seen", "What is removed, restarted or deleted has the ID or UID that was seen."},
		hitsWhatWasSeen},
	{Invariant{"one step at a time",
		"A rollout goes to what git declares, at most one minor version from what runs; " +
			"a pod that serves is restarted only for it, while all others serve."}, oneStepAtATime},
	{Invariant{"deleted as declared",
		"The objects of a cluster are deleted only if git declares it deleted, and once none of its pods is left."},
		deletedAsDeclared},
	{Invariant{"downgraded as declared",
		"etcd is told to prepare for the minor version below the one that runs only where git declares that or, to " +
			"have the log written out, the one above; it is told to stop only where git does not declare it, " +
			"or where a member is still to join."},
		downgradedAsDeclared},
	{Invariant{"one CA", "While members trust another CA than the one that certificates would be issued from, " +
		"nothing is done but to declare and to seal."}, oneCA},
	{Invariant{"fields as applied", "While admission rewrites a field that security or quorum depends on, and the " +
		"cluster is to run, no member is changed or replaced and no pod or volume is deleted."}, fieldsAsApplied},
	{Invariant{"done is done",
		"Done is said only of an orphan, of a suspended cluster, of one that does not run and shall not, or of one " +
			"whose every member is a sealed, healthy voter as declared."}, doneIsDone},
}

var everyInvariant = slices.Concat(invariants, rolloutInvariants, backupInvariants, restoreInvariants,
	recoveryInvariants, alarmInvariants)

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
		return "no rule or no message"
	case !oneLine(d.Message):
		return "a message of more than one line"
	case (d.Verdict == decide.Act) != (d.Action != nil):
		return "an action exactly when the verdict is Act"
	case d.Recheck < 0 || d.Recheck > time.Minute:
		return "recheck out of bounds"
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
		return "renews certificates that are good for long"
	case renews && (s.Record.CA == "" || s.Record.CA != s.CA.Secret):
		return "issues certificates of a CA that is not on record"
	case s.Declared.Orphaned != "" && !renews:
		return "acts on an orphan"
	case len(s.Declared.Problems) > 0 && !renews:
		return "acts on a declaration with problems"
	case len(s.Objects.Foreign) > 0:
		return "acts beside foreign objects"
	case len(s.Objects.Relabelled) > 0:
		return "acts beside objects without their labels"
	case s.LockHolder != "":
		return "acts while another pass holds the lease"
	case declares:
		return ""
	case s.Declared.Suspended:
		return "acts on a suspended cluster"
	case stopsLost:
		return ""
	case cluster(s) == ambiguous:
		return "acts between two cluster IDs"
	case foundsAnother(s):
		return "acts on a cluster that is not the one that its members were to found"
	case len(s.Objects.Irreplaceable) > 0 && !seals && d.Action != decide.Action(decide.StopPods{}):
		return "acts without the CA"
	case len(s.Objects.Terminating) > 0 && !seals:
		return "acts on objects that are going away"
	}
	return ""
}

// ambiguous is the cluster of a state with contradictory cluster IDs.
const ambiguous = ^decide.ID(0)

// cluster returns the known cluster ID, zero if no source knows an ID, or ambiguous if the sources disagree.
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

// foundsAnother reports whether all recorded members are initial members, and the cluster that they have formed has a
// different ID than follows from the record.
func foundsAnother(s decide.State) bool {
	if s.FoundingID == 0 || s.Record.ClusterID != 0 || s.ReportedClusterID != 0 || len(s.Record.Members) == 0 {
		return false
	}
	for _, m := range s.Record.Members {
		if m.Mode != decide.Founding {
			return false
		}
	}
	return cluster(s) != 0 && cluster(s) != s.FoundingID
}

func neverFoundedTwice(s decide.State, d decide.Decision) string {
	a, founds := d.Action.(decide.Bootstrap)
	begun := len(s.Record.Members) > 0
	switch {
	case !founds:
		return ""
	case cluster(s) != 0 || len(s.Membership.Members) > 0:
		return "founds a cluster that has formed"
	case !begun && s.Declared.Lifecycle != decide.Running:
		return "founds a cluster that is not to run"
	case !begun && s.Declared.RenamedFrom != "":
		return "founds an empty cluster in the place of a renamed one"
	case !begun && a.Restores != (s.Declared.Restore.Digest != ""):
		return "founds a cluster with other data than declared"
	case !begun && a.Restores && a.Replicas != 1:
		return "restores more than one member"
	case !begun && !a.Restores && a.Replicas != s.Declared.Replicas:
		return "founds another number of members than declared"
	case begun && a.Restores:
		return "restores into a cluster that is being founded"
	case begun && a.Replicas != len(s.Record.Members):
		return "founds another number of members than it began with"
	}
	for _, m := range s.Record.Members {
		if m.Mode != decide.Founding {
			return "founds a cluster with a member beyond founding"
		}
	}
	if !begun && leftovers(s) {
		return "founds a cluster where another has left something"
	}
	return ""
}

func leftovers(s decide.State) bool {
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent || r.VolumeUID != "" {
			return true
		}
	}
	return s.Objects.RunsVersion+s.Objects.RunsHash != ""
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

// wrongStep returns the problem with a rollout: it does not match the declaration, or exceeds one minor version.
func wrongStep(s decide.State, a decide.StartRollout) string {
	if a.Version != s.Declared.Version || a.SpecHash != s.Declared.SpecHash {
		return "rolls to something that is not declared"
	}
	major, minor, _ := minorOf(a.Version)
	for _, m := range s.Membership.Members {
		runsMajor, runsMinor, known := minorOf(m.Version)
		skips := major != runsMajor || minor > runsMinor+1 || minor < runsMinor-1
		if m.Answers && known && skips {
			return fmt.Sprintf("rolls from %s to %s", m.Version, a.Version)
		}
	}
	return ""
}

// wrongRestart returns the problem with restarting a serving pod: it already matches the declaration, or new pods would
// not, or another member does not serve.
func wrongRestart(s decide.State, a decide.RestartReplica) string {
	r := replicaAt(s, a.Ordinal)
	if member, _ := memberNamed(s, a.Ordinal); !member.Answers {
		return ""
	}
	switch {
	case r.PodVersion == s.Declared.Version && r.PodSpecHash == s.Declared.SpecHash:
		return "restarts what is as declared"
	case s.Objects.RunsVersion != s.Declared.Version || s.Objects.RunsHash != s.Declared.SpecHash:
		return "restarts a pod that would not come back as declared"
	case !allAnswer(s.Membership.Members):
		return "restarts a member while another does not answer"
	}
	return ""
}

func doneIsDone(s decide.State, d decide.Decision) string {
	switch {
	case d.Verdict != decide.Done, s.Declared.Suspended, s.Declared.Orphaned != "":
		return ""
	case s.Declared.Lifecycle != decide.Running:
		return notGone(s)
	case len(s.Objects.Drift) > 0:
		return "objects are missing or changed"
	case !s.Membership.Known || cluster(s) != s.Record.ClusterID || s.Record.ClusterID == 0:
		return "it is not known what runs"
	case len(s.Membership.Members) != s.Declared.Replicas || len(s.Record.Members) != s.Declared.Replicas:
		return "another number of members than declared"
	case s.Objects.RunsVersion != s.Declared.Version || s.Objects.RunsHash != s.Declared.SpecHash:
		return "new pods are not as declared"
	}
	for _, m := range s.Membership.Members {
		ordinal, ours := ordinalOf(s, m.Name)
		recorded, _ := recordedAt(s.Record, ordinal)
		r := replicaAt(s, ordinal)
		healthyVoter := m.Answers && m.Started && !m.Learner && len(m.Alarms) == 0
		if !ours || !healthyVoter || recorded.Mode != decide.Sealed || r.Pod != decide.PodReady {
			return m.Name + " is not a sealed, healthy voter"
		}
		if r.VolumeTerminating || r.VolumeUID == "" && recorded.VolumeUID != "" {
			return m.Name + " is on a volume that is being deleted"
		}
		madeOtherwise := r.PodVersion != s.Declared.Version || r.PodSpecHash != s.Declared.SpecHash
		if ordinal >= s.Declared.Replicas || r.PodVersion+r.PodSpecHash != "" && madeOtherwise {
			return m.Name + " is not as declared"
		}
	}
	return ""
}

// notGone returns the remains of a cluster that should not run.
func notGone(s decide.State) string {
	for _, r := range s.Replicas {
		switch {
		case r.Pod != decide.PodAbsent:
			return "a pod is left of what shall not run"
		case r.VolumeUID != "" && s.Declared.Lifecycle == decide.Deleted && s.Declared.Retention == decide.Delete:
			return "a volume is left of what shall be deleted"
		}
	}
	switch {
	case s.Objects.RunsReplicas > 0:
		return "what shall not run may run"
	case s.Declared.Lifecycle == decide.Deleted && len(s.Objects.Remaining) > 0:
		return "an object is left of what shall be deleted"
	}
	return ""
}
