package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	const most = 31
	if names := namesOf(newRun(streams{}).Flags()); len(names) > most {
		t.Errorf("run has %d flags, more than %d: %v", len(names), most, names)
	}
}

// TestPolicyNamesItsSettings checks that messages about policies refer to existing settings, both in sourceDefaults and in
// an entry of sources.
func TestPolicyNamesItsSettings(t *testing.T) {
	for _, kind := range policy.Kinds {
		if config.NameOf(string(kind)) != "sourceDefaults."+kind.Setting() {
			t.Errorf("%s: %s, want %s", kind, kind.Setting(), config.NameOf(string(kind)))
		}
	}
}

// TestMessagesNameNoRemovedFlags checks that the code, and thus its messages, does not name flags that no command has,
// because they are only settings.
func TestMessagesNameNoRemovedFlags(t *testing.T) {
	exist := map[string]bool{}
	for _, c := range commandsOf(newRoot(streams{})) {
		for _, name := range namesOf(c.Flags()) {
			exist[name] = true
		}
	}
	flag := regexp.MustCompile(`--([a-z0-9]+(-[a-z0-9]+)*)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == "sandbox" || d.Name() == "bin" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range flag.FindAllStringSubmatch(string(text), -1) {
			if name := found[1]; config.NameOf(name) != "" && !exist[name] {
				t.Errorf("%s: --%s is only the setting %s", path, name, config.NameOf(name))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
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
