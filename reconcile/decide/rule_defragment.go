package decide

import (
	"fmt"
	"slices"
	"time"

	"quorate.dev/quorate/internal/etcdversion"
)

// Defragmentation is the declared defragmentation of members.
type Defragmentation struct {
	// MinFreePercent and MinFree, in bytes, are the minimum unused space in a database file before the member is
	// defragmented. Both must be reached. MinFreePercent is zero if members are defragmented only on request.
	MinFreePercent int   `json:"minFreePercent,omitempty"`
	MinFree        int64 `json:"minFree,omitempty"`
	// Windowed is true if git declares a maintenance window.
	Windowed bool `json:"windowed,omitempty"`
	// Request identifies a request in git to defragment all members once, or is empty.
	Request string `json:"request,omitempty"`
}

// DefragmentationRequest is a request to defragment all members once, as recorded in the status.
type DefragmentationRequest struct {
	// Request identifies the request, as in Defragmentation, or is empty if no request is recorded.
	Request string `json:"request,omitempty"`
	// Since is when a pass first found the request.
	Since time.Time `json:"since,omitzero"`
	// Completed is true once the defragmentation of every member has been attempted since then.
	Completed bool `json:"completed,omitempty"`
}

// LastDefragmentation describes the last time that a pass defragmented a member, or tried to. It is zero if the time is
// unknown.
type LastDefragmentation struct {
	At time.Time `json:"at,omitzero"`
	// Failure is why the defragmentation failed, or empty.
	Failure string `json:"failure,omitempty"`
}

// keepsDataOnDefragmentation is the first etcd 3.5 version that does not apply changes twice if it is stopped during a
// defragmentation (etcd pull request 14730).
var keepsDataOnDefragmentation = etcdversion.Must("3.5.6")

// defragment makes one member return the unused space in its database to the file system. Until this is done, the
// member does not serve requests or apply changes. Defragmenting the leader would make all clients wait, so the leader
// comes last, after it has transferred leadership. A request takes effect only once it is recorded in the status, so
// that it is not carried out repeatedly if the status cannot be written.
func defragment(s State) (Decision, bool) {
	due := s.dueForDefragmentation()
	if len(due) == 0 || s.whyNotDefragment() != "" {
		return Decision{}, false
	}
	if order := s.Declared.Defragmentation.Request; s.defragmentsAll() && s.DefragmentationRequest.Request != order {
		_, backsUp := s.startDueBackup()
		d, _ := wait(recheck, "git requests defragmentation of all members (%s): recording the request first", order)
		return d, !backsUp && !s.alarmed() // do not delay a due backup or AlarmRaised
	}
	next := leaderLast(due)
	why := s.describeUnused(next)
	if next.Leader && len(s.Membership.Voters()) > 1 {
		return s.transferLeadership(next, func(Member) bool { return true }, "%s, and %s is the leader", why,
			s.nameOf(next))
	}
	return act(Defragment{next.ID, s.nameOf(next)}, "%s: defragmenting %s, which does not serve requests until done",
		why, s.nameOf(next))
}

// leaderLast returns the last member that is not the leader, or the leader if it is the only member in the list.
func leaderLast(members []Member) Member {
	last := len(members) - 1
	if members[last].Leader && last > 0 {
		return members[last-1]
	}
	return members[last]
}

// dueForDefragmentation returns the members that are due for defragmentation.
func (s State) dueForDefragmentation() []Member {
	var due []Member
	for _, m := range s.MembersInOrder() {
		if s.mustReturnSpace(m) || s.defragmentsAll() && s.defragmentedBefore(m, s.requestedSince()) {
			due = append(due, m)
		}
	}
	return due
}

// mustReturnSpace reports whether a member must be defragmented because of its unused space. Without a declared window,
// the only voter is not defragmented for this reason, because that interrupts all clients.
func (s State) mustReturnSpace(m Member) bool {
	order := s.Declared.Defragmentation
	if order.MinFreePercent == 0 || s.WindowClosed || !order.Windowed && len(s.Membership.Voters()) < 2 {
		return false
	}
	percent := float64(m.unused()) / float64(max(m.DBSize, 1)) * 100
	return m.unused() >= order.MinFree && percent >= float64(order.MinFreePercent) && !s.justDefragmented(m)
}

// unused returns the unused space in the member's database file, in bytes.
func (m Member) unused() int64 { return max(m.DBSize-m.DBSizeInUse, 0) }

// justDefragmented reports whether a member was defragmented so recently that another defragmentation would not help. A
// time in the future does not count.
func (s State) justDefragmented(m Member) bool {
	pause := defragmentationPause
	if m.Defragmented.Failure != "" {
		pause = failedDefragmentationPause
	}
	at := m.Defragmented.At
	return !at.IsZero() && s.Now.Sub(at) < pause && !YetToCome(at, s.Now)
}

// defragmentsAll reports whether git requests defragmentation of all members and the request is not completed.
func (s State) defragmentsAll() bool {
	order, last := s.Declared.Defragmentation.Request, s.DefragmentationRequest
	return order != "" && (last.Request != order || !last.Completed)
}

// requestedSince returns when a pass first found the request. It never returns a time in the future.
func (s State) requestedSince() time.Time {
	last := s.DefragmentationRequest
	if last.Request != s.Declared.Defragmentation.Request || last.Since.After(s.Now) {
		return s.Now
	}
	return last.Since
}

func (s State) defragmentedBefore(m Member, since time.Time) bool {
	return m.Defragmented.At.Before(since)
}

// RequestToReport returns the request to record in the status. tried is the ID of the member that the pass has
// defragmented, or tried to defragment, and zero if there was no attempt.
func (s State) RequestToReport(tried ID) DefragmentationRequest {
	order, next := s.Declared.Defragmentation.Request, s.DefragmentationRequest
	if order == "" || next.Request == order && next.Completed {
		return next
	}
	next = DefragmentationRequest{Request: order, Since: s.requestedSince()}
	next.Completed = s.Membership.Known && len(s.Membership.Members) > 0 && all(s.Membership.Members,
		func(m Member) bool { return m.ID == tried || !s.defragmentedBefore(m, next.Since) })
	return next
}

// RefuseDefragmentation returns why a member must not be defragmented now, or "".
func (s State) RefuseDefragmentation(id ID) string {
	i := slices.IndexFunc(s.Membership.Members, func(m Member) bool { return m.ID == id })
	switch why := s.whyNotDefragment(); {
	case why != "":
		return why
	case i < 0:
		return "etcd no longer lists the member"
	case s.Membership.Members[i].Leader && len(s.Membership.Voters()) > 1:
		return "the member is the leader"
	}
	return ""
}

// whyNotDefragment returns why no member may be defragmented now, or "".
func (s State) whyNotDefragment() string {
	_, surplus := s.surplus()
	switch {
	case !s.settled():
		return "not all members are known to be healthy"
	case s.adopting():
		return "the cluster has guests"
	case s.rolls():
		return "members must be restarted first"
	case s.lacksMember() || surplus:
		return "members are being added or removed"
	case s.Membership.Downgrade != "":
		return "etcd is preparing its data for a different version"
	case !s.onlyOutOfSpace():
		return "members may hold different data"
	case s.Backups.Hidden != "":
		return "it is unknown whether a backup is being taken: " + s.Backups.Hidden
	case s.Backups.anyRuns():
		return "a backup is being taken"
	case len(s.behind()) > 0:
		return sentence(s.behind())
	}
	for _, v := range s.running() {
		if !v.AtLeast(keepsDataOnDefragmentation) {
			return fmt.Sprintf("if etcd %s stops during a defragmentation, its data may differ from other members' "+
				"data; declare %s or newer", v, keepsDataOnDefragmentation)
		}
	}
	return ""
}

// describeUnused describes why a member is due: its unused space, or the request.
func (s State) describeUnused(m Member) string {
	if !s.mustReturnSpace(m) {
		return fmt.Sprintf("git requests defragmentation of all members (%s)", s.Declared.Defragmentation.Request)
	}
	return fmt.Sprintf("%dMi of the %dMi in the database of %s is unused", m.unused()>>20, m.DBSize>>20, s.nameOf(m))
}

// defragmentationWarnings returns warnings about failed defragmentations and a waiting request.
func (s State) defragmentationWarnings() []string {
	var warnings []string
	for _, m := range s.MembersInOrder() {
		// etcd may have completed the defragmentation after the request failed.
		if last := m.Defragmented; last.Failure != "" && (!m.Answers || m.unused() >= m.DBSize/20) {
			warnings = append(warnings, fmt.Sprintf("the defragmentation of %s at %s failed: %s. To retry now, "+
				"set the annotation etcd.quorate.dev/defragment to a new value in git", s.nameOf(m),
				last.At.UTC().Format(time.RFC3339), last.Failure))
		}
	}
	if why := s.whyNotDefragment(); s.defragmentsAll() && why != "" && s.toRun() {
		warnings = append(warnings, fmt.Sprintf("the requested defragmentation (%s) is waiting: %s",
			s.Declared.Defragmentation.Request, why))
	}
	return warnings
}
