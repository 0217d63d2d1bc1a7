package invariants

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// adoptionInvariants are the invariants about the members of an adopted cluster that Quorate does not manage.
var adoptionInvariants = []invariant{
	{Invariant{"guests leave only if git releases them",
		"A guest is removed, or dropped from the record, only if git releases it. A responding guest is removed only " +
			"while all members respond, and only if the replicas have quorum without any guest."},
		guestsLeaveAsDeclared},
	{Invariant{"an adopted cluster keeps its voters",
		"While guests are recorded, Quorate does not stop or delete the pods of recorded members. Guests are " +
			"recorded before any replica exists."},
		joinedKeepRunning},
}

func isGuest(s decide.State, m decide.Member) bool { return slices.Contains(s.Record.Guests, m.ID) }

// guests returns the number of listed guests.
func guests(s decide.State) int {
	n := 0
	for _, m := range s.Membership.Members {
		if isGuest(s, m) {
			n++
		}
	}
	return n
}

// wanted returns the number of replicas that should be members.
func wanted(s decide.State) int {
	if s.Declared.Adoption.Abandon && len(s.Record.Guests) > 0 {
		return 0
	}
	return s.Declared.Replicas
}

func guestsLeaveAsDeclared(s decide.State, d decide.Decision) string {
	if a, removes := d.Action.(decide.RemoveMember); removes {
		m, _ := memberByID(s, a.ID)
		if isGuest(s, m) {
			return mayNotLeave(s, m)
		}
	}
	return ""
}

func mayNotLeave(s decide.State, m decide.Member) string {
	if !slices.Contains(s.Declared.Adoption.Release, m.ID) {
		return fmt.Sprintf("removes guest %s, which git does not release", m.ID)
	}
	own, rest := 0, 0
	for _, other := range voters(s) {
		if other.ID == m.ID {
			continue
		}
		rest++
		if !isGuest(s, other) && other.Answers {
			own++
		}
	}
	switch {
	case !m.Answers:
		return ""
	case !allAnswer(s.Membership.Members):
		return fmt.Sprintf("removes guest %s while another member does not respond", m.ID)
	case 2*own <= rest:
		return fmt.Sprintf("removes guest %s, but the replicas do not have quorum without guests", m.ID)
	}
	return ""
}

// droppedGuest returns which guest a record drops although git does not release it, or etcd lists it.
func droppedGuest(s decide.State, after decide.Record) string {
	for _, id := range s.Record.Guests {
		_, listed := memberByID(s, id)
		released := slices.Contains(s.Declared.Adoption.Release, id)
		if kept := slices.Contains(after.Guests, id); !kept && (listed || !released || !s.Membership.Known) {
			return fmt.Sprintf("guest %s is removed from the record", id)
		}
	}
	if len(s.Record.Guests) > 0 && after.Adopted != s.Record.Adopted {
		return "forgets that the cluster was adopted"
	}
	return ""
}

func joinedKeepRunning(s decide.State, d decide.Decision) string {
	if len(s.Record.Guests) == 0 || len(s.Record.Members) == 0 {
		return ""
	}
	switch d.Action.(type) {
	case decide.StopPods, decide.DeleteObjects, decide.StartRecovery:
		return fmt.Sprintf("%s, although the adopted cluster needs the replicas' votes", d.Action)
	case decide.ApplyObjects:
		if s.Declared.Lifecycle != decide.Running {
			return "stops pods, although the adopted cluster needs the replicas' votes"
		}
	}
	return ""
}

// wronglyAdopted returns why an adoption must not begin.
func wronglyAdopted(s decide.State, a decide.Bootstrap) string {
	switch {
	case len(s.Record.Members)+len(s.Record.Guests) > 0 || s.Record.ClusterID != 0 || s.Membership.ClusterID != 0:
		return "adopts a cluster although this cluster exists"
	case a.Adopts != s.Declared.Adoption.ClusterID || s.Declared.Adoption.Abandon || a.Replicas != 0 || a.Restores:
		return "adopts a cluster that git does not declare"
	case !s.Source.Known || s.Source.ClusterID != a.Adopts:
		return "adopts a cluster whose members are unknown"
	case s.Declared.Lifecycle != decide.Running || s.Declared.RenamedFrom != "":
		return "adopts a cluster although no member should run"
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent || r.VolumeUID != "" {
			return "adopts a cluster although pods or volumes exist"
		}
	}
	for _, m := range s.Source.Members {
		if !m.Answers || m.Learner || len(m.Alarms) > 0 {
			return fmt.Sprintf("adopts a cluster although %s is not a healthy voter", m.Name)
		}
	}
	return ""
}
