package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/internal/config"
)

// perRun lists the flags of run that a configuration file cannot set, because they are decisions about a single run.
var perRun = []string{"config", "loop", "until-converged", "timeout", "output", "detailed-exitcode", "approve",
	"confirm-removals", "allow-recovery"}

// TestRunHasFewFlags checks that settings for occasional use do not become flags of run.
func TestRunHasFewFlags(t *testing.T) {
	const most = 30
	if names := namesOf(newRun(streams{}).Flags()); len(names) > most {
		t.Errorf("run has %d flags, more than %d: %v", len(names), most, names)
	}
}

// TestPolicyNamesItsSettings checks that messages about a policy name settings that exist.
func TestPolicyNamesItsSettings(t *testing.T) {
	for _, kind := range policy.Kinds {
		if config.NameOf(string(kind)) != kind.Setting() {
			t.Errorf("%s: %s, want %s", kind, kind.Setting(), config.NameOf(string(kind)))
		}
	}
}

// TestEverySettingHasAFlag checks that each setting has a flag that parses its value, and that each flag of run either
// is a setting or concerns a single run.
func TestEverySettingHasAFlag(t *testing.T) {
	f := &runFlags{}
	newRunOf(f, streams{})
	for _, s := range slices.Concat(config.Settings, config.SourceSettings) {
		if f.config.flags.Lookup(s.Flag) == nil {
			t.Errorf("%s has no flag --%s", s.Name, s.Flag)
		}
	}
	own := new(source).flags()
	for _, s := range slices.Concat(config.SourceSettings, config.TenantSettings) {
		if own.Lookup(s.Flag) == nil {
			t.Errorf("a source has no setting %s for %s", s.Flag, s.Name)
		}
	}
	f.config.flags.VisitAll(func(flag *pflag.Flag) {
		if (config.NameOf(flag.Name) == "") != slices.Contains(perRun, flag.Name) {
			t.Errorf("--%s: the setting is %q", flag.Name, config.NameOf(flag.Name))
		}
	})
}
