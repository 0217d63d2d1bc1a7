package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile/decide"
)

const (
	// unknown is shown for a value that should exist but is not known.
	unknown = "unknown"
	// nothing is shown for a value that does not exist or was not reported.
	nothing = "-"
)

// VerdictUnknown is used instead of a verdict for a cluster that could not be observed.
const VerdictUnknown = "Unknown"

// VerdictName returns the verdict on a cluster, or VerdictUnknown.
func (c Cluster) VerdictName() string {
	if c.Error != "" || c.Decision.Rule == "" {
		return VerdictUnknown
	}
	return string(c.Decision.Verdict)
}

// verdictLabel returns the verdict on a cluster and its rule.
func (c Cluster) verdictLabel() string {
	if name := c.VerdictName(); name != VerdictUnknown {
		return name + "/" + printable.Line(c.Decision.Rule)
	}
	return VerdictUnknown
}

// sortRank returns the position of the cluster in the sort order "state".
func (c Cluster) sortRank() int {
	return slices.Index([]string{string(decide.Block), VerdictUnknown, string(decide.Wait), string(decide.Act),
		string(decide.Done)}, c.VerdictName())
}

// since returns the time at which the current state of the cluster began: when passes began to wait, or when the
// condition for the verdict became true. It is zero if the time is unknown.
func (c Cluster) since() time.Time {
	kind := ""
	switch c.VerdictName() {
	case string(decide.Done):
		kind = v1alpha1.ConditionReady
	case string(decide.Block):
		kind = v1alpha1.ConditionStalled
	case string(decide.Act), string(decide.Wait):
		kind = v1alpha1.ConditionReconciling
	}
	if waits := c.State.WaitsSince(c.Decision); kind != "" && !waits.IsZero() {
		return waits
	}
	condition := meta.FindStatusCondition(c.status().Conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != c.Decision.Rule {
		return time.Time{} // an earlier pass has reported a different state
	}
	return condition.LastTransitionTime.Time
}

// status returns the status of the custom resource, or an empty status if it does not exist.
func (c Cluster) status() v1alpha1.EtcdClusterStatus {
	if c.Custom == nil {
		return v1alpha1.EtcdClusterStatus{}
	}
	return c.Custom.Status
}

// age returns the time from then to now, in kubectl's format.
func age(now, then time.Time) string {
	if then.IsZero() || now.IsZero() {
		return nothing
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// members returns the number of responding voters, the number of voters, and the number of learners.
func (c Cluster) members() string {
	list := c.State.Membership
	switch {
	case c.Error != "":
		return unknown
	case !list.Known && c.State.Declared.Lifecycle != decide.Running, !list.Known && !c.formed():
		return nothing
	case !list.Known:
		return unknown
	}
	voters := list.Voters()
	text := fmt.Sprintf("%d/%d", decide.Answering(voters), len(voters))
	if learners := len(list.Members) - len(voters); learners > 0 {
		text += "+" + strconv.Itoa(learners)
	}
	return text
}

// formed reports whether the cluster is known to have formed.
func (c Cluster) formed() bool {
	return c.State.Record.ClusterID != 0 || c.State.ReportedClusterID != 0
}

// versions returns the versions that members run, without duplicates.
func (c Cluster) versions() string {
	var list []string
	for _, m := range c.State.Membership.Members {
		if m.Version != "" {
			list = append(list, printable.Short(m.Version, longestCell))
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > 0 {
		return strings.Join(list, ",")
	}
	return nothing
}

// size returns the size of the largest member database in bytes, or zero if no size is known.
func (c Cluster) size() int64 {
	largest := int64(0)
	for _, m := range c.State.Membership.Members {
		largest = max(largest, m.DBSize)
	}
	return largest
}

// sizes returns the size of the largest member database, and its quota.
func (c Cluster) sizes() string {
	if c.size() == 0 && c.State.Declared.Quota == 0 {
		return nothing
	}
	return ofQuota(c.size(), c.State.Declared.Quota)
}

// ofQuota returns the size of a database and its quota, given in bytes; zero means unknown.
func ofQuota(size, quota int64) string {
	now, most := nothing, nothing
	if size > 0 {
		now = human(size)
	}
	if quota > 0 {
		most = human(quota)
	}
	return now + "/" + most
}

// human formats bytes with at most one decimal.
func human(bytes int64) string {
	n, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for n >= 1023.95 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%dB", bytes)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") + units[0]
}

// backup returns the age of the newest backup, based on its slot.
func (c Cluster) backup() string {
	s := c.State
	text := nothing
	switch {
	case c.Error != "":
		return text
	case s.Backups.Last != nil:
		text = age(s.Now, s.Backups.Last.Slot)
	case s.Declared.BacksUp && s.Backups.Hidden != "":
		return unknown
	case s.Declared.BacksUp:
		text = "none"
	}
	if overdue, known := s.BackupStale(); overdue && known {
		text += ",overdue"
	}
	return text
}

// revision returns the commit that declared the cluster, abbreviated as git does.
func (c Cluster) revision() string {
	text := c.status().DeclaredRevision
	if r, ok := revision.Parse(text); ok && r.IsFull() {
		return r.Short()
	}
	return dash(printable.Short(text, longestCell))
}

// revisionAge returns the age of the commit that declared the cluster, based on its commit time, in parentheses and
// with a leading space. It returns "" if the commit time is unknown.
func (c Cluster) revisionAge() string {
	committed := c.status().DeclaredRevisionTime
	if committed.IsZero() || c.State.Now.IsZero() {
		return ""
	}
	return " (" + age(c.State.Now, committed.Time) + ")"
}

// remark returns the reason why the cluster has not converged. If it has converged, remark returns its first warning.
func (c Cluster) remark() string {
	text := ""
	switch {
	case c.Error != "":
		text = c.Error
	case c.Decision.Rule != decide.Converged:
		text = c.Decision.Message
	case len(c.Warnings) > 0:
		text = c.Warnings[0]
		if more := len(c.Warnings) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
	}
	return printable.Line(text)
}

// Orders are the sort orders of clusters.
var Orders = []string{"name", "state", "size", "age"}

// Sort sorts clusters by the given order, then by Kubernetes cluster, namespace and name. The orders other than "name"
// put the clusters with the most urgent problems, the largest database or the most recent state change first.
func Sort(clusters []Cluster, order string) {
	slices.SortStableFunc(clusters, func(a, b Cluster) int {
		first := 0
		switch order {
		case "state":
			first = cmp.Or(cmp.Compare(a.sortRank(), b.sortRank()), cmp.Compare(a.Decision.Rule, b.Decision.Rule))
		case "size":
			first = cmp.Compare(b.size(), a.size())
		case "age":
			first = b.since().Compare(a.since())
		}
		return cmp.Or(first, cmp.Compare(a.Kubernetes, b.Kubernetes), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
}
