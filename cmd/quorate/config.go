package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/internal/config"
)

func newConfig(std streams) *cobra.Command {
	var file configPath
	c := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file, and print the settings with their defaults",
		Long: `Config checks the file specified by --config, and prints all settings: those in the file, and the others
as comments with their defaults. It does not print values that may be secret. Some limits have lower
defaults in a container with little memory.`,
		Example: `  # List all settings:
  quorate config

  quorate config --config quorate.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f := &runFlags{}
			newRunOf(f, std)
			f.config.file = file
			if err := f.config.apply(&f.source); err != nil {
				return err
			}
			if err := f.checkSettings(); err != nil {
				return err
			}
			return f.config.print(std.out)
		},
	}
	c.Flags().Var(&file, "config", "configuration file to check")
	return c
}

// checkSettings checks the settings without reading the files that they name.
func (f *runFlags) checkSettings() error {
	f.source.namespaces = f.live.namespaces
	_, live := f.live.check()
	_, log := f.log.logger(streams{out: io.Discard, err: io.Discard})
	problems := errors.Join(live, f.live.places.check(), log, usage(f.loop.checkIntervals()), f.metrics.check(),
		f.notify.checkAlone())
	if len(f.source.values) == 0 {
		return problems
	}
	return errors.Join(problems, f.checkSourceSettings())
}

// checkSourceSettings checks the sources, and the settings that depend on them.
func (f *runFlags) checkSourceSettings() error {
	if err := f.source.checkTogether(); err != nil {
		return err
	}
	if !f.source.live() {
		if _, err := f.source.checkEach(checkHere); err != nil {
			return err
		}
	}
	if _, err := f.source.scope(); err != nil {
		return err
	}
	return f.notify.checkHosts(&f.source)
}

// checkHere checks a source whose credentials may be elsewhere, such as in a pod.
func checkHere(s source) error {
	err := s.check()
	if _, missing := errors.AsType[*fs.PathError](err); missing {
		return nil
	}
	if errors.As(err, &usageError{}) || errors.Is(err, gitsource.ErrOptions) {
		return err
	}
	return nil // credentials cannot be read here
}

// print prints the settings as a configuration file.
func (f *configFlag) print(w io.Writer) error {
	p := &settingsPrinter{flags: f.flags}
	p.line("apiVersion: %s", config.APIVersion)
	p.line("kind: %s", config.Kind)
	p.settings(config.Settings, f.content.Values)
	p.line("sourceDefaults:")
	p.indent = "  "
	p.settings(config.SourceSettings, f.content.Defaults)
	p.indent = ""
	if len(f.content.Sources) == 0 {
		p.line("# list of sources: each has a location, and may override sourceDefaults and set as and asGroups, the " +
			"user and the groups to impersonate for its clusters")
		p.line("# sources:\n# - location: https://git.example.com/fleet.git")
	} else {
		p.line("sources:")
	}
	for _, s := range f.content.Sources {
		p.line("- location: %s", shown(s.Location, s.Location.Items[0], "string"))
		p.indent = "  "
		p.given = true
		p.settings(slices.Concat(config.SourceSettings, config.TenantSettings), s.Values)
		p.indent, p.given = "", false
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// settingsPrinter formats settings as YAML.
type settingsPrinter struct {
	text   strings.Builder
	indent string
	flags  *pflag.FlagSet
	// given is true if only the settings in the file are printed.
	given bool
}

func (p *settingsPrinter) line(format string, args ...any) {
	fmt.Fprintf(&p.text, p.indent+format+"\n", args...)
}

// settings prints settings in the order of the list, with their values in the file or their defaults.
func (p *settingsPrinter) settings(list []config.Setting, values []config.Value) {
	in := map[string]config.Value{}
	for _, v := range values {
		in[v.Flag] = v
	}
	last, indent := "", p.indent
	for _, s := range list {
		v, set := in[s.Flag]
		if p.given && !set {
			continue
		}
		group, name, grouped := strings.Cut(s.Name, ".")
		p.indent = indent
		if grouped {
			if group != last {
				p.line("%s:", group)
			}
			p.indent += "  "
		} else {
			group, name = "", s.Name
		}
		last = group
		p.setting(name, p.flags.Lookup(s.Flag), v)
	}
	p.indent = indent
}

// setting prints the description of a setting, and its value. If v has no items, it prints the default as a comment.
func (p *settingsPrinter) setting(name string, flag *pflag.Flag, v config.Value) {
	if !p.given {
		p.line("# %s", settingUsage(flag.Usage))
	}
	switch {
	case v.List && len(v.Items) == 0:
		p.line("%s: []", name)
	case v.List:
		p.line("%s:", name)
		for _, item := range v.Items {
			p.line("- %s", shown(v, item, flag.Value.Type()))
		}
	case len(v.Items) > 0:
		p.line("%s: %s", name, shown(v, v.Items[0], flag.Value.Type()))
	case flag.DefValue == "" || flag.DefValue == "[]":
		p.line("# %s:", name)
	default:
		p.line("# %s: %s", name, scalar(flag.DefValue, flag.Value.Type()))
	}
}

// flagInText matches a flag in a description.
var flagInText = regexp.MustCompile(`--[a-z][-a-z]*`)

// settingUsage returns the description of a flag for its setting. It names other settings instead of their flags.
func settingUsage(usage string) string {
	usage = strings.NewReplacer("; repeatable, or a list separated by semicolons", "",
		"; repeatable, requires", "; requires", "; repeatable", "").Replace(usage)
	return flagInText.ReplaceAllStringFunc(usage, func(flag string) string {
		name := config.NameOf(strings.TrimPrefix(flag, "--"))
		if name == "" || flag == "--source" {
			return flag
		}
		return strings.TrimPrefix(name, "sourceDefaults.") // the same in an entry of sources
	})
}

// hidden is printed in place of a value that may be secret.
const hidden = "(hidden)"

// passwordInURL matches a URL with a password or token, anywhere in a value. The user name of SSH is not secret.
var passwordInURL = regexp.MustCompile(`(?i)https?://[^/@]*@|://[^/@]*:[^/@]*@`)

// shown returns a value for printing, as it is written in the file. It hides values that may contain a secret.
func shown(v config.Value, item config.Item, kind string) string {
	secret := map[string]bool{"notify": true, "pushgateway": true, "heartbeat": true, "git-proxy": true}[v.Flag] ||
		passwordInURL.MatchString(item.Written)
	isVariable := item.Text != item.Written && strings.HasPrefix(item.Written, "$(") &&
		strings.Index(item.Written, ")") == len(item.Written)-1
	if secret && !isVariable && !strings.HasPrefix(item.Written, "@") {
		return scalar(hidden, "string")
	}
	return scalar(item.Written, kind)
}

// scalar returns a YAML scalar. kind is the type of the flag.
func scalar(text, kind string) string {
	if kind == "bool" || kind == "int" {
		return text
	}
	encoded, err := yaml.Marshal(text)
	if err != nil || strings.Count(string(encoded), "\n") > 1 {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSuffix(string(encoded), "\n")
}
