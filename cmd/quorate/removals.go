package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile/report"
)

// revisions lists the revisions whose removals are confirmed. The flag names revisions so that a flag that is left in
// place, for example in a CronJob, does not confirm a later accident.
type revisions []string

func (r *revisions) add(f *pflag.FlagSet) {
	f.Var(r, strings.TrimPrefix(report.FlagConfirm, "--"),
		"revision or commit whose removal of clusters is intended, "+
			"however many it removes; repeatable")
}

// Set implements pflag.Value. It accepts several revisions separated by spaces, as in a report on several sources.
func (r *revisions) Set(value string) error {
	names := strings.Fields(value)
	if len(names) == 0 {
		return fmt.Errorf("the revision is empty")
	}
	for _, name := range names {
		if name != revision.Directory && !revision.IsCommit(name) {
			return fmt.Errorf("%q is not a revision: expected one from the report, such as main@sha1:COMMIT, or the "+
				"full 40-digit commit hash", name)
		}
	}
	*r = append(*r, names...)
	return nil
}

// String implements pflag.Value.
func (r *revisions) String() string { return strings.Join(*r, " ") }

// Type implements pflag.Value.
func (r *revisions) Type() string { return "strings" }
