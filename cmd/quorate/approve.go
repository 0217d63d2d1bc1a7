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

// approveFlag specifies what a run may do without further approval.
type approveFlag struct {
	neverRestart bool
	// plan is the digest of the approved plan, or empty if --approve does not name a plan.
	plan string
}

// needsRevisions is the error for approving a plan of a directory, because its files may have changed since the plan.
const needsRevisions = "--approve plan=DIGEST requires a git repository or --source cluster: the files in a " +
	"directory may change"

const (
	approveAuto         = "auto"
	approveNeverRestart = "never-restart"
)

func (f *approveFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "approve", "what the run may do: auto (everything declared), never-restart (only changes that do not "+
		"restart or remove members), or plan=DIGEST (only what that plan shows; with --until-converged)")
}

var planDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Set implements pflag.Value.
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
		return errors.New("expected plan=sha256:HEX, with the digest printed by quorate plan")
	default:
		return fmt.Errorf("%q is not one of auto, never-restart, plan=DIGEST", text)
	}
	return nil
}

// String implements pflag.Value.
func (f *approveFlag) String() string {
	switch {
	case f.neverRestart:
		return approveNeverRestart
	case f.plan != "":
		return "plan=" + f.plan
	}
	return approveAuto
}

// Type implements pflag.Value.
func (f *approveFlag) Type() string { return "approval" }

// check rejects flags that could prevent the run from completing the approved plan. A plan is the complete forecast of
// one run.
func (f *approveFlag) check(untilConverged, loop bool) error {
	switch {
	case f.plan == "":
		return nil
	case loop:
		return usageError{errors.New("--approve plan=DIGEST applies to one run: replace --loop with --until-converged")}
	case !untilConverged:
		return usageError{errors.New("--approve plan=DIGEST requires --until-converged: the plan changes after the " +
			"first step")}
	}
	return nil
}

// keepTo restricts the run to the approved plan, if there is one. It first computes the current plan. If that differs
// from the approved plan, keepTo returns an error, and the run does not change anything in any Kubernetes cluster.
func (f *approveFlag) keepTo(ctx context.Context, targets []*target) error {
	if f.plan == "" {
		return nil
	}
	parts := onEach(targets, func(s *target) report.Report {
		held := &reconcile.FetchOnce{Source: s.r.Source}
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
	// An empty plan has no digest, and the run does not change anything.
	if digest := plan.Digest(); digest != "" && digest != f.plan {
		return blockedError{fmt.Errorf("the plan of %s is now %s, but %s was approved: run quorate plan again, "+
			"review the changes, and approve the new digest", plan.Revision, digest, f.plan)}
	}
	for i, s := range targets {
		if s.r != nil {
			s.r.Approval = approval.Of(parts[i].Report)
		}
	}
	return nil
}
