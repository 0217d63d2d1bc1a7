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
	"quorate.dev/quorate/reconcile/report"
)

// approveFlag says what a run may do without asking anybody.
type approveFlag struct {
	neverRestart bool
	// plan is the digest of the one that was approved; empty if none is asked for.
	plan string
}

// needsRevisions is why a plan of a directory, whose files may be others by now, cannot be approved.
const needsRevisions = "--approve plan=DIGEST needs a git repository, or --source cluster: the files of a directory may change"

const (
	approveAuto         = "auto"
	approveNeverRestart = "never-restart"
)

func (f *approveFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "approve", "what may be done: auto, all that is declared; never-restart, only what restarts and "+
		"removes no member; plan=DIGEST, with --until-converged, only what the plan of that digest shows")
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
		return usageError{errors.New("--approve plan=DIGEST is for one run: give it without --loop, with " +
			"--until-converged")}
	case !untilConverged:
		return usageError{errors.New("--approve plan=DIGEST needs --until-converged: what comes after the first step " +
			"is another plan")}
	}
	return nil
}

// keepTo has a run do what a plan shows, if one was approved. The one that there is now is made first; a run that finds
// another one says so, and does nothing anywhere.
func (f *approveFlag) keepTo(ctx context.Context, sites []*site) error {
	if f.plan == "" {
		return nil
	}
	parts := everywhere(sites, func(s *site) report.Report {
		held := &reconcile.Held{Source: s.r.Source}
		s.r.Source = held
		planner := &reconcile.Reconciler{Source: held, Live: s.r.Live, Log: s.r.Log, Plan: true,
			ClusterTimeout: s.r.ClusterTimeout}
		return planner.Pass(ctx)
	})
	for i := range parts {
		parts[i].Report.Planned = true
	}
	plan := report.Join(parts)
	if plan.Unversioned() {
		return usageError{errors.New(needsRevisions)}
	}
	// Where nothing is to be done, nothing is.
	if digest := plan.Digest(); digest != "" && digest != f.plan {
		return blockedError{fmt.Errorf("the plan of %s is %s now, and %s was approved: make a plan again, see what "+
			"has changed, and have that approved", plan.Revision, digest, f.plan)}
	}
	for i, s := range sites {
		if s.r != nil {
			s.r.Approval = approval.Of(parts[i].Report)
		}
	}
	return nil
}
