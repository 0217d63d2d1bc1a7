package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/approval"
)

// approveFlag says what a run may do without asking anybody.
type approveFlag struct {
	neverRestart bool
	// plan is the digest of the one that was approved; empty if none is asked for.
	plan string
}

// needsRevisions is why a plan of files that may be others by now, or of none, cannot be approved.
const needsRevisions = "--approve plan=DIGEST needs a source that has revisions, such as a git repository"

const (
	approveAuto         = "auto"
	approveNeverRestart = "never-restart"
)

func (f *approveFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "approve", "what may be done: auto, all that is declared; never-restart, only what restarts and removes "+
		"no member; plan=DIGEST, with --until-converged, only what the plan of that digest shows")
}

var planDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Set takes one of the three.
func (f *approveFlag) Set(text string) error {
	digest, isPlan := strings.CutPrefix(text, "plan=")
	switch {
	case text == approveAuto:
		*f = approveFlag{}
	case text == approveNeverRestart:
		*f = approveFlag{neverRestart: true}
	case isPlan && planDigest.MatchString(digest):
		*f = approveFlag{plan: digest}
	case isPlan:
		return errors.New("want plan=sha256:HEX, with the digest that quorate plan has printed")
	default:
		return fmt.Errorf("%q is none of auto, never-restart, plan=DIGEST", text)
	}
	return nil
}

// String returns what was chosen.
func (f *approveFlag) String() string {
	switch {
	case f.neverRestart:
		return approveNeverRestart
	case f.plan != "":
		return "plan=" + f.plan
	}
	return approveAuto
}

// Type is what the help calls a value.
func (f *approveFlag) Type() string { return "approval" }

// check refuses what cannot be kept to: a plan is one road to its end.
func (f *approveFlag) check(untilConverged, loop bool) error {
	switch {
	case f.plan == "":
		return nil
	case loop:
		return usageError{errors.New("--approve plan=DIGEST is for one run: give it without --loop, with --until-converged")}
	case !untilConverged:
		return usageError{errors.New("--approve plan=DIGEST needs --until-converged: what comes after the first step is " +
			"another plan")}
	}
	return nil
}

// approval is what r is to keep to. With a plan, the one that there is now is made first; a run that finds another one
// says so, and does nothing.
func (f *approveFlag) approval(ctx context.Context, r *reconcile.Reconciler) (approval.Approval, error) {
	switch {
	case f.neverRestart:
		return approval.NeverRestart{}, nil
	case f.plan == "":
		return nil, nil
	}
	held := &reconcile.Held{Source: r.Source}
	r.Source = held
	planner := &reconcile.Reconciler{Source: held, Live: r.Live, Log: r.Log, Plan: true, ClusterTimeout: r.ClusterTimeout}
	plan := planner.Pass(ctx)
	if plan.Unversioned() {
		return nil, usageError{errors.New(needsRevisions)}
	}
	switch digest := plan.Digest(); {
	case digest == "" || digest == f.plan: // where nothing is to be done, nothing is
		return approval.Of(plan), nil
	default:
		return nil, blockedError{fmt.Errorf("the plan of %s is %s now, and %s was approved: make a plan again, see what "+
			"has changed, and have that approved", plan.Revision, digest, f.plan)}
	}
}
