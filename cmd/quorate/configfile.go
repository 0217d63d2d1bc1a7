package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/internal/config"
)

// configFlag names a configuration file. The flags of the command parse the settings in the file.
type configFlag struct {
	file  string
	flags *pflag.FlagSet
	// fromFile contains the flags that the file sets.
	fromFile map[string]bool
	// content is the content of the file.
	content config.Configuration
}

// add adds the flag to a command that has all its other flags.
func (f *configFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "config", "",
		"YAML file with settings, as printed by \"quorate config\"; flags override its settings")
	f.flags = c.Flags()
}

// given reports whether a flag is set on the command line.
func (f *configFlag) given(flag string) bool { return f.flags.Changed(flag) && !f.fromFile[flag] }

// alternatives lists flags that replace each other: if one of them is set on the command line, the settings of the
// others in the file have no effect.
var alternatives = [][]string{sources.Selecting, {"context", "fleet"}, {"as", "as-group"}}

// overridden reports whether a flag on the command line replaces a setting in the file.
func (f *configFlag) overridden(flag string) bool {
	if f.given(flag) {
		return true
	}
	for _, names := range alternatives {
		if slices.Contains(names, flag) && slices.ContainsFunc(names, f.given) {
			return true
		}
	}
	return false
}

// apply sets the flags that the file sets and the command line does not. It ignores settings that the command does not
// have, because a file may be shared by several commands.
func (f *configFlag) apply(s *sourceFlags) error {
	if f.file == "" {
		if f.flags.Changed("config") {
			return usageError{errors.New(`--config "": expected a file name`)}
		}
		return nil
	}
	text, err := readConfig(f.file)
	if err != nil {
		return usageError{fmt.Errorf("--config: %w", err)}
	}
	return f.applyText(text, os.LookupEnv, s)
}

// applyText does the same as apply with the content of the file. lookup returns the value of an environment variable.
func (f *configFlag) applyText(text []byte, lookup func(string) (string, bool), s *sourceFlags) error {
	var problems []config.Problem
	if f.content, problems = config.Parse(text, lookup); len(problems) == 0 {
		problems = f.set(s)
	}
	config.Sort(problems)
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s:%d: %s", f.file, p.Line, p.Message))
	}
	return usage(errs)
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

// set sets the flags, and the sources.
func (f *configFlag) set(s *sourceFlags) (problems []config.Problem) {
	f.fromFile = map[string]bool{}
	for _, v := range slices.Concat(f.content.Values, f.content.Defaults) {
		flag := f.flags.Lookup(v.Flag)
		if flag == nil || f.overridden(v.Flag) || s.shows != "" && v.Flag == nonFastForward {
			continue
		}
		f.fromFile[v.Flag] = true
		problems = append(problems, setFlag(flag, v)...)
	}
	if len(f.content.Sources) == 0 || f.given("source") {
		return problems
	}
	for _, entry := range f.content.Sources {
		own, wrong := ownSettings(entry, s.shows != "")
		problems = append(problems, wrong...)
		s.values, s.own = append(s.values, entry.Location.Items[0].Text), append(s.own, own)
	}
	return problems
}

// nonFastForward is a flag without effect on commands that do not apply anything.
const nonFastForward = "allow-non-fast-forward"

// setFlag sets a flag to a value in the file.
func setFlag(flag *pflag.Flag, v config.Value) (problems []config.Problem) {
	if text := v.Items[0].Text; flag.Value.Type() == "bool" && text != "true" && text != "false" {
		return []config.Problem{{Line: v.Line, Message: v.Name + ": expected true or false"}}
	}
	if v.List && !isList(flag) {
		return []config.Problem{{Line: v.Line, Message: v.Name + ": expected one value"}}
	}
	for _, item := range v.Items {
		err := flag.Value.Set(item.Text)
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
	if location == ofCluster && len(entry.Values) > 0 {
		problems = append(problems, config.Problem{Line: entry.Values[0].Line, Message: fmt.Sprintf(
			"%s: the custom resources take no settings of their own; use sourceDefaults.policy", entry.Values[0].Name)})
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
	}
	return own, problems
}
