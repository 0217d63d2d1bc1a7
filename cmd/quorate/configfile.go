package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/internal/config"
)

// configFlag names the configuration file. Flags parse the settings in the file.
type configFlag struct {
	file configPath
	// flags are the flags of the command and of all its settings, including those that are not on the command line.
	flags *pflag.FlagSet
	// fromFile contains the flags that the file sets.
	fromFile map[string]bool
	// lines contains the positions of these settings, for errors.
	lines   map[string]string
	content config.Configuration
}

// configPath is the path of a configuration file. It can be set only once: if the last of several files were used, a
// policy in another one would silently have no effect.
type configPath string

func (p *configPath) String() string { return string(*p) }
func (p *configPath) Type() string   { return "string" }

func (p *configPath) Set(path string) error {
	switch {
	case path == "":
		return errors.New("expected a file name")
	case *p != "":
		return errors.New("only one file can be used")
	}
	*p = configPath(path)
	return nil
}

// everyday lists the settings that are also flags of run and plan. All others are only in the configuration file.
var everyday = []string{"source", "branch", "path", "git-credentials", "verify-keys", "allow-namespace",
	"allow-adoption", "allow-backup-destination", nonFastForward, "max-deletions", "backup-image", "kubeconfig",
	"context", "fleet", "allow-exec", "as", "namespace", "shard", "etcd-access", "listen", "log-level", "log-format"}

// inPipelines lists the settings that are also flags of plan and validate: which commit to read.
var inPipelines = []string{"tag", "commit", "ref"}

// nameOf returns how the user sets something: with a flag, or with a setting in the configuration file.
func nameOf(flag string) string {
	setting := config.NameOf(flag)
	if setting == "" || slices.Contains(everyday, flag) {
		return "--" + flag
	}
	return setting
}

// add adds the flag to a command that has all its other flags, and removes the flags of settings that are not in
// everyday or more.
func (f *configFlag) add(c *cobra.Command, more ...string) {
	f.flags = c.Flags()
	f.flags.Var(&f.file, "config",
		"YAML file with settings, as printed by \"quorate config\"; flags override its settings")
	c.ResetFlags()
	f.flags.VisitAll(func(flag *pflag.Flag) {
		if nameOf(flag.Name) == "--"+flag.Name || slices.Contains(more, flag.Name) {
			c.Flags().AddFlag(flag)
		}
	})
}

// has reports whether the command has a flag or a setting.
func (f *configFlag) has(flag string) bool { return f.flags.Lookup(flag) != nil }

// given reports whether a flag is set on the command line.
func (f *configFlag) given(flag string) bool { return f.flags.Changed(flag) && !f.fromFile[flag] }

// named returns how the user has set something: the setting and its line in the file, or the name.
func (f *configFlag) named(flag string) string { return cmp.Or(f.lines[flag], nameOf(flag)) }

// alternatives lists groups of flags that override one another: setting any of them on the command line overrides the
// others in the file.
var alternatives = [][]string{sources.Selecting, {"context", "fleet"}, {"as", "as-group"}}

// isReplaced reports whether a flag, or an alternative to it, is set on the command line.
func (f *configFlag) isReplaced(flag string) bool {
	return f.given(flag) || slices.ContainsFunc(alternatives, func(names []string) bool {
		return slices.Contains(names, flag) && slices.ContainsFunc(names, f.given)
	})
}

// apply sets the flags that the file sets and the command line does not. It ignores settings that the command does not
// have, because a file may be shared by several commands.
func (f *configFlag) apply(s *sourceFlags) error {
	if f.file == "" {
		return nil
	}
	file := string(f.file)
	text, err := readConfig(file)
	if err != nil {
		return usageError{fmt.Errorf("--config: %w", err)}
	}
	return f.applyText(file, text, os.LookupEnv, s)
}

// applyText does the same as apply with the content of a file. lookup returns the value of an environment variable.
func (f *configFlag) applyText(file string, text []byte, lookup func(string) (string, bool), s *sourceFlags) error {
	content, problems := config.Parse(text, lookup, f.has)
	if len(problems) == 0 {
		problems = f.set(s, file, content)
	}
	return usage(inFile(file, problems))
}

// inFile returns the problems in a file as errors.
func inFile(file string, problems []config.Problem) (errs []error) {
	config.Sort(problems)
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s:%d: %s", file, p.Line, p.Message))
	}
	return errs
}

// readConfig reads a configuration file. If the file is too large, it reads enough to notice that.
func readConfig(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, config.MostBytes+1))
}

// set sets the flags, and the sources, except those that are set on the command line.
func (f *configFlag) set(s *sourceFlags, file string, c config.Configuration) (problems []config.Problem) {
	f.content, f.fromFile, f.lines = c, map[string]bool{}, map[string]string{}
	for _, v := range slices.Concat(c.Values, c.Defaults) {
		flag := f.flags.Lookup(v.Flag)
		if flag == nil || f.isReplaced(v.Flag) || s.shows != "" && v.Flag == nonFastForward {
			continue
		}
		f.fromFile[v.Flag] = true
		f.lines[v.Flag] = fmt.Sprintf("%s:%d: %s", file, v.Line, v.Name)
		problems = append(problems, setFlag(flag, v)...)
	}
	if f.given("source") {
		return append(problems, replaced(c.Sources)...)
	}
	for _, entry := range c.Sources {
		own, wrong := ownSettings(entry, s.shows != "")
		problems = append(problems, wrong...)
		s.values, s.own = append(s.values, entry.Location.Items[0].Text), append(s.own, own)
		s.where = append(s.where, fmt.Sprintf("%s:%d: %s", file, entry.Line, entry.Name))
	}
	return problems
}

// replaced rejects entries with their own settings if --source replaces them. Without these settings (for example, a
// policy), validate or plan could accept a declaration that a run with the entry would reject.
func replaced(entries []config.Source) (problems []config.Problem) {
	for _, entry := range entries {
		var names []string
		for _, v := range entry.Values {
			names = append(names, strings.TrimPrefix(v.Name, entry.Name+"."))
		}
		if len(names) > 0 {
			problems = append(problems, config.Problem{Line: entry.Line, Message: fmt.Sprintf("%s: --source "+
				"replaces this entry, so its own settings (%s) would have no effect; use a separate file with the "+
				"settings for --source in sourceDefaults", entry.Name, strings.Join(names, ", "))})
		}
	}
	return problems
}

// nonFastForward is a flag without effect on commands that do not apply anything.
const nonFastForward = "allow-non-fast-forward"

// setFlag sets a flag to a value in the file.
func setFlag(flag *pflag.Flag, v config.Value) (problems []config.Problem) {
	if len(v.Items) == 0 {
		if _, is := flag.Value.(*allowedFlag); is && flag.Value.Set("") == nil { // nothing is allowed
			flag.Changed = true
			return nil
		}
		return []config.Problem{{Line: v.Line, Message: v.Name + ": the list is empty; omit the setting"}}
	}
	if text := v.Items[0].Text; flag.Value.Type() == "bool" && text != "true" && text != "false" {
		return []config.Problem{{Line: v.Line, Message: fmt.Sprintf("%s: %q: expected true or false", v.Name,
			v.Items[0].Written)}}
	}
	if v.List && !isList(flag) {
		return []config.Problem{{Line: v.Line, Message: v.Name + ": expected one value"}}
	}
	for _, item := range v.Items {
		err := setValue(flag, item.Text)
		switch {
		case err != nil && item.Text != item.Written: // the error could contain a secret
			problems = append(problems, config.Problem{Line: item.Line, Message: fmt.Sprintf(
				"%s: the value of %s is not valid", v.Name, item.Written)})
		case err != nil:
			problems = append(problems, config.Problem{Line: item.Line, Message: fmt.Sprintf("%s: %v", v.Name, err)})
		}
	}
	flag.Changed = true
	return problems
}

// setValue sets a flag to a value in the file, unless a check fails.
func setValue(flag *pflag.Flag, text string) error {
	if check := settingChecks[flag.Name]; check != nil {
		if err := check(text); err != nil {
			return err
		}
	}
	err := flag.Value.Set(text)
	if err != nil && flag.Value.Type() == "duration" {
		return fmt.Errorf("%q: expected a duration with a unit, such as 5s or 1h30m", text)
	}
	return err
}

// isList reports whether a flag is repeatable.
func isList(flag *pflag.Flag) bool {
	return slices.Contains([]string{"strings", "stringArray"}, flag.Value.Type())
}

// ownSettings returns the settings of a source in the file, and what is wrong with them. showing is true for commands
// that do not apply anything.
func ownSettings(entry config.Source, showing bool) (own []setting, problems []config.Problem) {
	location := entry.Location.Items[0].Text
	if remote.IsAddress(location) {
		if _, err := remote.ParseAddress(location); err != nil {
			problems = append(problems, config.Problem{Line: entry.Location.Line,
				Message: fmt.Sprintf("%s: %v", entry.Location.Name, err)})
		}
	}
	if err := checkLocation(location); err != nil {
		problems = append(problems, config.Problem{Line: entry.Location.Line,
			Message: fmt.Sprintf("%s: %v", entry.Location.Name, err)})
	}
	if location == ofCluster && len(entry.Values) > 0 {
		problems = append(problems, config.Problem{Line: entry.Values[0].Line, Message: fmt.Sprintf(
			"%s: the custom resources do not accept settings; use sourceDefaults.policy", entry.Values[0].Name)})
	}
	s := newSource(sources.DefaultLimits)
	flags := s.flags()
	for _, v := range entry.Values {
		if showing && v.Flag == nonFastForward {
			continue
		}
		problems = append(problems, setFlag(flags.Lookup(v.Flag), v)...)
		for _, item := range v.Items {
			own = append(own, setting{v.Flag, item.Text})
		}
		if len(v.Items) == 0 {
			own = append(own, setting{v.Flag, ""})
		}
	}
	return own, problems
}
