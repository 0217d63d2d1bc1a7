package scenarios

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// road is the part of a plan that lists the future actions on a cluster.
type road struct {
	Risks []string `json:"risks"`
	Steps []struct {
		What string `json:"what"`
	} `json:"steps"`
	End *struct{ Rule, Verdict string } `json:"end"`
}

// convergeAsPlanned runs passes until nothing is left to do, and fails unless they follow the forecast of a plan
// created immediately before.
func (w *world) convergeAsPlanned() result {
	w.t.Helper()
	return w.convergeAs(w.runFrom(outside, "plan", patientWithEtcd))
}

// convergeAsApproved is like convergeAsPlanned, but the run may execute only that plan.
func (w *world) convergeAsApproved() result {
	w.t.Helper()
	plan := w.runFrom(outside, "plan", patientWithEtcd)
	return w.convergeAs(plan, patientWithEtcd, "--approve", "plan="+plan.report.Digest)
}

func (w *world) convergeAs(plan result, args ...string) result {
	w.t.Helper()
	r := w.converge(append(args, "--log-level", "info")...)
	ahead := plan.cluster("a").Road
	if ahead == nil {
		w.t.Errorf("the plan shows no road:\n%s", plan)
		return r
	}
	var foretold []string
	for _, step := range ahead.Steps {
		foretold = append(foretold, step.What)
	}
	if want, got := plainly(foretold), plainly(r.acted("a")); !slices.Equal(want, got) {
		w.t.Errorf("planned\n\t%s\ndone\n\t%s", strings.Join(want, "\n\t"), strings.Join(got, "\n\t"))
	}
	if end := r.cluster("a").Decision; ahead.End == nil || ahead.End.Rule != end.Rule || ahead.End.Verdict != end.Verdict {
		w.t.Errorf("planned to end with %+v, and it did with %s %s", ahead.End, end.Verdict, end.Rule)
	}
	return r
}

var (
	actedLine   = regexp.MustCompile(`msg=acted cluster=\S+/(\S+) rule=\S+ action="?([^"]*?)"? changed=true`)
	byOrdinal   = regexp.MustCompile(`^(AddLearner|RestartReplica|DeleteVolume) (\d+).*`)
	sealed      = regexp.MustCompile(`^Seal members=(\S+) .*`)
	withHash    = regexp.MustCompile(` (hash=|\(|VolumeLost|VolumeGoing).*`)
	notAsMember = regexp.MustCompile(`(^|[ ,])(\d)`)
)

// acted lists the actions that changed something, worded as in a plan.
func (r result) acted(cluster string) []string {
	var list []string
	for _, line := range strings.Split(r.stderr, "\n") {
		match := actedLine.FindStringSubmatch(line)
		if match == nil || match[1] != cluster {
			continue
		}
		action := byOrdinal.ReplaceAllString(match[2], "$1 "+cluster+"-$2")
		if m := sealed.FindStringSubmatch(action); m != nil {
			action = "Seal " + notAsMember.ReplaceAllString(m[1], "${1}"+cluster+"-$2")
		}
		list = append(list, withHash.ReplaceAllString(action, ""))
	}
	return list
}

// plainly removes details that a plan cannot predict: which member is the leader, how soon members start, and how soon
// pods and volumes are deleted. This timing determines how often progress is recorded, and whether a second learner is
// added before the first is promoted.
func plainly(actions []string) []string {
	var list, joining []string
	for _, action := range append(actions, "end") {
		kind, _, _ := strings.Cut(action, " ")
		switch kind {
		case "MoveLeader", "ApplyObjects", "Seal":
		case "AddLearner", "PromoteLearner":
			joining = append(joining, action)
		default:
			slices.Sort(joining)
			list, joining = append(append(list, joining...), action), nil
		}
	}
	return list
}

func TestPlainly(t *testing.T) {
	r := result{stderr: `time=x level=INFO msg=acted cluster=n/a rule=ScaleUp action="AddLearner 3 https://a-3.a.n.svc:2380" changed=true detail=d
time=x level=INFO msg=acted cluster=n/a rule=ApplyObjects action=ApplyObjects changed=false detail=d
time=x level=INFO msg=acted cluster=n/b rule=ApplyObjects action=ApplyObjects changed=true detail=d
time=x level=INFO msg=acted cluster=n/a rule=Seal action="Seal members=3,4 cluster=abc" changed=true detail=d
time=x level=INFO msg=acted cluster=n/a rule=Seal action="Seal members=3,4 cluster=abc" changed=true detail=d
time=x level=INFO msg=acted cluster=n/a rule=RollOneMember action="MoveLeader 1 to 2" changed=true detail=d
time=x level=INFO msg=acted cluster=n/a rule=RollOneMember action="RestartReplica 2 (pod 1-2)" changed=true detail=d
time=x level=INFO msg=acted cluster=n/a rule=StartRollout action="StartRollout version=3.7.3 hash=ab" changed=true detail=d
`}
	want := []string{"AddLearner a-3", "Seal a-3,a-4", "Seal a-3,a-4", "MoveLeader 1 to 2", "RestartReplica a-2", "StartRollout version=3.7.3"}
	if got := r.acted("a"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	want = []string{"AddLearner a-3", "PromoteLearner a-3", "PromoteLearner a-4", "RestartReplica a-2", "end"}
	if got := plainly([]string{"AddLearner a-3", "Seal a-3 and a-4", "PromoteLearner a-4", "ApplyObjects", "PromoteLearner a-3", "RestartReplica a-2"}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
