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
	// Act means that one action must be carried out.
	Act Verdict = "Act"
	// Wait means that something in progress will end by itself.
	Wait Verdict = "Wait"
	// Block means that nothing can be done safely and manual action is required.
	Block Verdict = "Block"
	// Done means that the cluster is up to date.
	Done Verdict = "Done"
)

// Decision is the next step for one cluster, and the reason.
type Decision struct {
	// Rule is the rule that applied.
	Rule    string  `json:"rule"`
	Verdict Verdict `json:"verdict"`
	// Action is the action to carry out, or nil unless the verdict is Act.
	Action Action `json:"action,omitempty"`
	// Message is the reason, on one line.
	Message string `json:"message"`
	// Recheck is when to check again if no object changes, or zero if that is not necessary.
	Recheck time.Duration `json:"-"`

	// waitsFor identifies what the rule is waiting for, if the rule's name is not enough: see Waited.
	waitsFor string
	// overdue is true if a wait or a retry has lasted too long.
	overdue bool
	// asksNext is true if the action only makes a different voter the leader, to retry an unsuccessful action there.
	// Such an action does not end a wait.
	asksNext bool
}

// String returns the decision on one line.
func (d Decision) String() string {
	if d.Action == nil {
		return fmt.Sprintf("%s %s: %s", d.Verdict, d.Rule, d.Message)
	}
	return fmt.Sprintf("%s %s %s: %s", d.Verdict, d.Rule, d.Action, d.Message)
}

// Decide returns the next step for one cluster: the decision of the first rule that applies, except that an action that
// keeps being reverted comes last. Nothing is done while another pass holds the lease.
func Decide(s State) Decision {
	d := firstThatLasts(s)
	if d.Verdict == Act && s.LockHolder != "" {
		d = Decision{
			Rule:     LockedElsewhere,
			Verdict:  Wait,
			Message:  fmt.Sprintf("%s is next, but another pass holds the lease: %s", d.Rule, s.LockHolder),
			Recheck:  recheck,
			waitsFor: s.LockHolder,
		}
	}
	if d.Verdict == Wait {
		d = s.escalate(d, "")
	}
	if named := d.Rule == "ScaleUp" || d.Rule == "MembersMissing"; d.Verdict == Block && !named {
		d.Message += s.describeUnfilled()
	}
	d.Message = s.inNamespace(d.Message)
	return d
}

// ask returns the rule's decision, with its name and a message on one line, and whether the rule applies.
func (r rule) ask(s State) (Decision, bool) {
	d, spoke := r.apply(s)
	if !spoke {
		return Decision{}, false
	}
	d.Rule = r.Name
	d.Message = s.inNamespace(cmp.Or(strings.Join(strings.Fields(d.Message), " "), r.About))
	return d, true
}

// Rule is a rule's documentation.
type Rule struct {
	Name  string
	About string
}

// Rules lists the rules in evaluation order.
func Rules() []Rule {
	list := []Rule{{LockedElsewhere,
		"Another process holds the cluster's lease. Do not act."}}
	for _, r := range rules {
		list = append(list, r.Rule)
	}
	return append(list, Rule{Converged, "Nothing to do."})
}

// Opinion is one rule's result for a state.
type Opinion struct {
	Rule     string
	Speaks   bool
	Decision Decision
}

// Opinions evaluates every rule, including the rules after the first that applies.
func Opinions(s State) []Opinion {
	var list []Opinion
	for _, r := range rules {
		d, spoke := r.ask(s)
		list = append(list, Opinion{Rule: r.Name, Speaks: spoke, Decision: d})
	}
	return list
}
