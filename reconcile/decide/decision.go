package decide

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Verdict is the kind of a decision.
type Verdict string

// The four verdicts.
const (
	// Act: one action is to be carried out.
	Act Verdict = "Act"
	// Wait: something is under way that will end by itself.
	Wait Verdict = "Wait"
	// Block: nothing can be done safely; a person is needed.
	Block Verdict = "Block"
	// Done: the cluster is as declared.
	Done Verdict = "Done"
)

// Decision is what to do next for one cluster, and why.
type Decision struct {
	// Rule that spoke.
	Rule    string  `json:"rule"`
	Verdict Verdict `json:"verdict"`
	// Action to carry out; nil unless the verdict is Act.
	Action Action `json:"action,omitempty"`
	// Message says why in one line.
	Message string `json:"message"`
	// Recheck is when to look again although no object has changed; zero if there is no need.
	Recheck time.Duration `json:"-"`

	// waitsFor is what exactly is waited for, if the rule does not say it all: see Waited.
	waitsFor string
	// overdue: it was to wait, or to try once more, and has done so for too long.
	overdue bool
	// asksNext: it only lets another be asked for what has been tried in vain, and ends no wait.
	asksNext bool
}

// String returns the decision on one line.
func (d Decision) String() string {
	if d.Action == nil {
		return fmt.Sprintf("%s %s: %s", d.Verdict, d.Rule, d.Message)
	}
	return fmt.Sprintf("%s %s %s: %s", d.Verdict, d.Rule, d.Action, d.Message)
}

// Decide returns what to do next for one cluster: the decision of the first rule that applies, except that an action
// that keeps being undone comes last. Nothing is done while another pass holds the lease.
func Decide(s State) Decision {
	d := firstThatLasts(s)
	if d.Verdict == Act && s.LockHolder != "" {
		d = Decision{
			Rule:     LockedElsewhere,
			Verdict:  Wait,
			Message:  fmt.Sprintf("%s would be next, but another pass is acting: %s", d.Rule, s.LockHolder),
			Recheck:  recheck,
			waitsFor: s.LockHolder,
		}
	}
	if d.Verdict == Wait {
		d = s.insist(d, "")
	}
	if named := d.Rule == "ScaleUp" || d.Rule == "MembersMissing"; d.Verdict == Block && !named {
		d.Message += s.describeUnfilled()
	}
	return d
}

// ask returns what the rule says, in its name and on one line, and whether it speaks.
func (r rule) ask(s State) (Decision, bool) {
	d, spoke := r.apply(s)
	if !spoke {
		return Decision{}, false
	}
	d.Rule = r.Name
	d.Message = cmp.Or(strings.Join(strings.Fields(d.Message), " "), r.About)
	return d, true
}

// Rule is a rule as it is documented.
type Rule struct {
	Name  string
	About string
}

// Rules lists the rules in the order in which they are asked.
func Rules() []Rule {
	list := []Rule{{LockedElsewhere,
		"Another pass holds the lease of the cluster: whatever the rules say, do not act."}}
	for _, r := range rules {
		list = append(list, r.Rule)
	}
	return append(list, Rule{Converged, "Nothing is left to do."})
}

// Opinion is what one rule says of a state.
type Opinion struct {
	Rule     string
	Speaks   bool
	Decision Decision
}

// Opinions asks every rule, also those after the first that speaks: why, and why not.
func Opinions(s State) []Opinion {
	var list []Opinion
	for _, r := range rules {
		d, spoke := r.ask(s)
		list = append(list, Opinion{Rule: r.Name, Speaks: spoke, Decision: d})
	}
	return list
}
