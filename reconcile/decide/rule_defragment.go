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

// Unfinished is the failure that the status records before a defragmentation begins. If the pass dies, the
// status keeps it.
const Unfinished = "no result was reported"

// defragmentsSafely is the first etcd 3.5 version that is safe to defragment: earlier versions may apply changes twice
// if they stop during a defragmentation (etcd pull request 14730), and panic if the volume is full (18822).
var defragmentsSafely = etcdversion.Must("3.5.17")

// defragment makes one member return the unused space in its database to the file system. Until this is done, the
// member does not serve requests or apply changes. Defragmenting the leader would make all clients wait, so the leader
// comes last, after it has transferred leadership. If an attempt failed or its result is unknown, etcd may still be
// carrying it out. Status requests do not show this, because etcd 3.5 responds to them as usual.
func defragment(s State) (Decision, bool) {
	due := s.dueForDefragmentation()
	if len(due) == 0 {
		return Decision{}, false
	}
	switch why := s.whyNotDefragment(); {
	case why != "" && s.waitsToDefragment():
		return wait(recheck, "the requested defragmentation (%s) is waiting: %s", s.Declared.Defragmentation.Request,
			why)
	case why != "":
		return Decision{}, false
	}
	if m, found := s.mayStillDefragment(); found {
		return wait(recheck, "%s may still be carrying out the defragmentation started at %s (%s)", s.nameOf(m),
			m.Defragmented.At.UTC().Format(time.RFC3339), m.Defragmented.Failure)
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

// waitsToDefragment reports whether a requested defragmentation can be delayed only for a temporary reason.
func (s State) waitsToDefragment() bool {
	return s.defragmentsAll() && s.toRun() && !s.adopting() && s.Backups.Hidden == "" && s.tooOldToDefragment() == ""
}

// mayStillDefragment returns a member that may still be carrying out an attempt that failed or whose result is unknown.
func (s State) mayStillDefragment() (Member, bool) {
	for _, m := range s.MembersInOrder() {
		if s.DefragmentationToReport(m).Failure != "" && s.attemptedWithin(m, defragmentationLimit) {
			return m, true
		}
	}
	return Member{}, false
}

// ToDefragment reports whether an action defragments a member or prepares a defragmentation.
func ToDefragment(s State, a Action) bool {
	d, acts := defragment(s)
	return acts && d.Action == a
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
		requested := s.defragmentsAll() && !s.defragmentedSince(m, s.requestedSince())
		if requested || s.hasToReturnSpace(m) || s.hasToMakeRoom(m) {
			due = append(due, m)
		}
	}
	return due
}

// hasToReturnSpace reports whether a member must be defragmented because of its unused space. Without a declared
// window, the only voter is not defragmented for this reason, because that interrupts all clients. Soon after an
// attempt, another attempt would rarely help, unless the result of the first is unknown because the pass died.
func (s State) hasToReturnSpace(m Member) bool {
	order := s.Declared.Defragmentation
	if order.MinFreePercent == 0 || s.WindowClosed || !order.Windowed && len(s.Membership.Voters()) < 2 {
		return false
	}
	percent := float64(m.unused()) / float64(max(m.DBSize, 1)) * 100
	pause := failedDefragmentationPause
	switch m.Defragmented.Failure {
	case "":
		pause = defragmentationPause
	case Unfinished:
		pause = 0
	}
	return m.unused() >= order.MinFree && percent >= float64(order.MinFreePercent) && !s.attemptedWithin(m, pause)
}

// unused returns the unused space in the member's database file, in bytes.
func (m Member) unused() int64 { return max(m.DBSize-m.DBSizeInUse, 0) }

// fragmented reports whether a noticeable part of a member's database file is unused.
func (m Member) fragmented() bool { return m.DBSize > 0 && m.unused() >= m.DBSize/20 }

// DefragmentationToReport returns the last defragmentation of a member, as reported in the status. If etcd has completed
// a failed attempt after all, the failure is omitted. This is unknown for a full database, because etcd may not report
// unused space yet.
func (s State) DefragmentationToReport(m Member) LastDefragmentation {
	last := m.Defragmented
	if m.Answers && !m.fragmented() && !s.lacksRoom(m) {
		last.Failure = ""
	}
	return last
}

// attemptedWithin reports whether the last attempt to defragment a member began less than the given pause ago. A time
// in the future does not count.
func (s State) attemptedWithin(m Member, pause time.Duration) bool {
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

// defragmentedSince reports whether a pass has tried to defragment a member since the given time. An attempt with an
// unknown result counts only if the member has little unused space.
func (s State) defragmentedSince(m Member, since time.Time) bool {
	last := m.Defragmented
	unfinished := last.Failure == Unfinished && m.fragmented()
	return !last.At.Before(since) && !last.At.After(s.Now) && !unfinished
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
		func(m Member) bool { return m.ID == tried || s.defragmentedSince(m, next.Since) })
	return next
}

// RefuseDefragmentation returns why a member must not be defragmented now, or "".
func (s State) RefuseDefragmentation(id ID) string {
	i := slices.IndexFunc(s.Membership.Members, func(m Member) bool { return m.ID == id })
	busy, found := s.mayStillDefragment()
	switch why := s.whyNotDefragment(); {
	case why != "":
		return why
	case found:
		return s.nameOf(busy) + " may still be defragmenting"
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
	return s.tooOldToDefragment()
}

// tooOldToDefragment returns why a running etcd version is not safe to defragment, or "".
func (s State) tooOldToDefragment() string {
	for _, v := range s.running() {
		if !v.AtLeast(defragmentsSafely) {
			return fmt.Sprintf("etcd %s may crash or corrupt its data during a defragmentation; declare %s or newer", v,
				defragmentsSafely)
		}
	}
	return ""
}

// describeUnused describes why a member is due: its unused space, an alarm, or the request.
func (s State) describeUnused(m Member) string {
	switch {
	case s.hasToReturnSpace(m):
	case s.hasToMakeRoom(m):
		return fmt.Sprintf("etcd rejects writes (NOSPACE), and the database of %s uses %dMi of its quota of %dMi",
			s.nameOf(m), m.DBSize>>20, s.Declared.Quota>>20)
	default:
		return fmt.Sprintf("git requests defragmentation of all members (%s)", s.Declared.Defragmentation.Request)
	}
	return fmt.Sprintf("%dMi of the %dMi in the database of %s is unused", m.unused()>>20, m.DBSize>>20, s.nameOf(m))
}

// defragmentationWarnings returns warnings about failed defragmentations and a waiting request.
func (s State) defragmentationWarnings() []string {
	var warnings []string
	for _, m := range s.MembersInOrder() {
		last := s.DefragmentationToReport(m)
		if last.Failure != "" && s.attemptedWithin(m, failedDefragmentationPause) {
			warnings = append(warnings, fmt.Sprintf("the defragmentation of %s at %s failed: %s. To retry now, "+
				"set the annotation etcd.quorate.dev/defragment to a new value in git", s.nameOf(m),
				last.At.UTC().Format(time.RFC3339), last.Failure))
		}
	}
	order := s.Declared.Defragmentation
	if voters := len(s.Membership.Voters()); order.MinFreePercent > 0 && !order.Windowed && voters == 1 {
		warnings = append(warnings, "a single member is defragmented only on request, because defragmentation "+
			"interrupts all clients. Declare spec.etcd.defragmentation.window, or use the annotation "+
			"etcd.quorate.dev/defragment")
	}
	if old := s.tooOldToDefragment(); (order.MinFreePercent > 0 || s.Declared.RecoversSpace) && old != "" {
		warnings = append(warnings, "members are not defragmented: "+old)
	}
	if quota := s.Declared.Quota; order.MinFreePercent > 0 && quota > 0 && order.MinFree >= quota {
		warnings = append(warnings, fmt.Sprintf("members are defragmented only on request, because "+
			"spec.etcd.defragmentation.minFree (%dMi) is at least etcd.quota (%dMi)", order.MinFree>>20,
			quota>>20))
	}
	if !s.defragmentsAll() || !s.toRun() {
		return warnings
	}
	if why := s.whyNotDefragment(); why != "" {
		warnings = append(warnings, fmt.Sprintf("the requested defragmentation (%s) is waiting: %s", order.Request,
			why))
	}
	return warnings
}
