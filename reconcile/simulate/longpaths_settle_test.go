package simulate_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// settle heals all faults that can be healed, sets a reachable spec, and runs passes until they converge. A Block that
// requires manual judgment ends the path, and so does any Block if most of the data is lost. Otherwise, a Block is a
// fault if it remains even after the running version has been declared.
func (j *journey) settle() string {
	j.path.makeGood()
	w, blocked := j.path.World, 0
	for range passesToSettle {
		w.Heal()
		s := w.Observe()
		if faults := slices.Concat(decidetest.Faults(s), w.Violations()); len(faults) > 0 {
			return faults[0]
		}
		d, _ := w.Pass(simulate.NoCrash)
		switch {
		case d.Verdict == decide.Done:
			return first(w.Violations())
		case d.Verdict != decide.Block:
			blocked = 0
		case j.adopts && namesStrangers(d) && j.removeRejoined():
		case isForAPerson(d), j.adopts && namesStrangers(d), j.adopts && d.Rule == "MemberFailing": // the only replica does not run with this spec or data
			j.over = true
			return first(w.Violations())
		case j.isNeeded(d): // the suggested deletion would lose data
			j.over = true
			return first(w.Violations())
		case j.takesWayOut(d):
		case !w.Whole():
			j.over = true
			return first(w.Violations())
		case blocked == passesToLast:
			return fmt.Sprintf("it could end well, and ends in %s", d)
		case blocked == passesToLast/2:
			w.Declared.Version, w.Declared.SpecHash = whatRuns(s)
			fallthrough
		default:
			blocked++
		}
		w.Tick()
	}
	return fmt.Sprintf("no end after %d passes: %s", passesToSettle, decide.Decide(w.Observe()))
}

// isForAPerson reports whether a Block requires manual judgment.
func isForAPerson(d decide.Decision) bool {
	stopsItself := d.Rule == "QuorumLost" && strings.Contains(d.Message, "found data inconsistency with peers")
	return slices.Contains([]string{"MembersMissing", "DataInDoubt"}, d.Rule) || replacedTooOften(d) || stopsItself
}

// replacedTooOften reports whether a slot has reached its daily limit of new members; the cause requires manual
// investigation.
func replacedTooOften(d decide.Decision) bool {
	return d.Rule == "ReplaceMember" && strings.Contains(d.Message, "without lasting success")
}

// takesWayOut carries out the manual action that a Block names. It returns false if it does not know such an action.
func (j *journey) takesWayOut(d decide.Decision) bool {
	switch says := func(words string) bool { return strings.Contains(d.Message, words) }; {
	case d.Rule == "CALost" && says("kubectl delete pod"):
		for _, r := range j.path.Observe().Replicas {
			j.path.KillPod(r.Ordinal)
		}
	case d.Rule == "CALost":
		j.path.Scale(0)
	case d.Rule == "MembershipUnknown" && says("Any pod that you delete is recreated from the current spec"):
		for _, r := range j.path.Observe().Replicas {
			if r.PodVersion != j.path.Declared.Version || r.PodSpecHash != j.path.Declared.SpecHash {
				j.path.KillPod(r.Ordinal)
			}
		}
	case (d.Rule == "MembershipUnknown" || d.Rule == "WaitForFormation") && says("confirm-members"): // members no longer return false lists
		s := j.path.Observe()
		if list := s.ListToConfirm(); s.Declared.ConfirmedMembers != list {
			j.path.Declared.ConfirmedMembers = list
			return true
		}
		return false
	case releaseToDeclare.MatchString(d.Message):
		minor := releaseToDeclare.FindStringSubmatch(d.Message)[1]
		j.path.Declared.Version = map[string]string{"3.5": "3.5.35", "3.6": "3.6.16", "3.7": "3.7.3"}[minor]
	case d.Rule == "MemberFailing" && says("it has never started"):
		s := j.path.Observe()
		for _, m := range s.MembersInOrder() {
			if ordinal, ours := s.OrdinalOf(m); ours && !m.Started {
				j.path.RemoveMember(ordinal)
			}
		}
	case d.Rule == "ApplyObjects" && versionToReturnWith.MatchString(d.Message):
		j.path.Declared.Version = versionToReturnWith.FindStringSubmatch(d.Message)[1]
	case d.Rule == "ApplyObjects" && says("the etcd version that last used the volumes"):
		j.path.AnnotateVersions()
	case volumeInTheWay.MatchString(d.Message):
		j.path.DeleteVolume(inTheWay(d))
	case says("left etcd's member list, but git does not release it"):
		j.path.Declared.Adoption.Release = append(slices.Clone(j.path.Declared.Adoption.Release), unlistedGuests(j.path.Observe())...)
	case says("remove spec.adopt.release"):
		j.path.Declared.Adoption.Release = nil
	case says("spec.adopt.abandon has no effect"):
		j.path.Declared.Adoption.Abandon = false
	case enoughReplicas.MatchString(d.Message):
		j.path.Declared.Replicas, _ = strconv.Atoi(enoughReplicas.FindStringSubmatch(d.Message)[1])
	case j.adopts && d.Rule == "Adopt" && says("a replica of this cluster"):
		for n := range 5 {
			j.path.RemoveMember(n)
		}
	case j.adopts && d.Rule == "Adopt" && says("CORRUPT alarm"):
		j.path.ClearAlarms(decide.AlarmCorrupt)
	default:
		return false
	}
	return true
}

// versionToReturnWith matches the version to declare to bring back a cluster without a StatefulSet.
var versionToReturnWith = regexp.MustCompile(`to bring the cluster back, declare etcd (\S+), `)

// releaseToDeclare matches the minor version to declare so that a failing member is restarted.
var releaseToDeclare = regexp.MustCompile(`with the other declared changes, declare a (\S+) release`)

// namesStrangers reports whether a Block requires the removal of unknown members.
func namesStrangers(d decide.Decision) bool {
	return d.Verdict == decide.Block && !strings.Contains(d.Message, "spec.adopt.abandon has no effect") &&
		(d.Rule == "MembershipMismatch" || strings.Contains(d.Message, "Quorate cannot query"))
}

// removeRejoined manually removes the members that another tool has added, and reports whether etcd allows it.
func (j *journey) removeRejoined() bool {
	for i := range 5 {
		if !j.path.Hosts(i) {
			j.path.RemoveGuest(i)
		}
	}
	s := j.path.Observe()
	return !slices.ContainsFunc(s.Membership.Members, func(m decide.Member) bool {
		_, ours := s.OrdinalOf(m)
		return !ours && !s.Record.Hosts(m.ID)
	})
}

// enoughReplicas matches the number of replicas to declare for an adoption.
var enoughReplicas = regexp.MustCompile(`[dD]eclare at least (\d+) replica`)

// unlistedGuests returns the recorded guests that etcd does not list.
func unlistedGuests(s decide.State) []decide.ID {
	return slices.DeleteFunc(slices.Clone(s.Record.Guests), func(id decide.ID) bool {
		return slices.ContainsFunc(s.Membership.Members, func(m decide.Member) bool { return m.ID == id })
	})
}

// volumeInTheWay matches the ordinal of a claim that may be deleted manually.
var volumeInTheWay = regexp.MustCompile(`kubectl delete pvc data-a-(\d+)`)

// isNeeded reports whether a Block suggests deleting the last copy of data.
func (j *journey) isNeeded(d decide.Decision) bool {
	return volumeInTheWay.MatchString(d.Message) && j.path.IsLastCopy(inTheWay(d))
}

// inTheWay returns the ordinal of the claim whose deletion a Block suggests.
func inTheWay(d decide.Decision) int {
	n, _ := strconv.Atoi(volumeInTheWay.FindStringSubmatch(d.Message)[1])
	return n
}

// whatRuns returns the version and options of a ready pod or, if no pod is ready, the last known version.
func whatRuns(s decide.State) (version, hash string) {
	for _, r := range s.Replicas {
		if r.Pod == decide.PodReady {
			return r.PodVersion, r.PodSpecHash
		}
	}
	return cmp.Or(s.ReportedVersion, s.Declared.Version), s.Declared.SpecHash
}

// makeGood repairs every fault that can be repaired, and sets a reachable spec.
func (r *path) makeGood() {
	r.Heal()
	r.ScheduleBackup() // as Kubernetes eventually does
	good := decidetest.Declared(r.Declared.Replicas)
	good.Version, good.ReplaceAfter = r.Declared.Version, 2*time.Minute
	good.BacksUp, good.BacksUpBeforeUpgrade = r.Declared.BacksUp, r.Declared.BacksUpBeforeUpgrade
	good.BacksUpBeforeDeletion = r.Declared.BacksUpBeforeDeletion
	good.Adoption = r.Declared.Adoption
	if patch, settled := map[string]string{"3.5": "3.5.35", "3.6": "3.6.16", "3.7": "3.7.3"}[r.CommonVersion()]; settled {
		good.Version = patch
	} else if good.Version == r.Unpullable {
		good.Version = "3.6.16"
	}
	r.Declared = good
}
