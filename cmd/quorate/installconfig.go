package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/internal/config"
)

// checkSettings determines the configuration file of the runs, and returns all problems with it and with the flags
// after --. changed reports whether a flag of install is set.
func (f *installFlags) checkSettings(changed func(flag string) bool) error {
	run := &runFlags{}
	command := newRunOf(run, streams{})
	problems := checkRunFlags(command.Flags(), command.ParseFlags(append(runArgs(f.options.Mode), f.options.Args...)))
	err := f.findConfig(changed)
	if err != nil || problems != nil {
		return errors.Join(err, problems)
	}
	lookup, unknown := f.podVariables()
	file := cmp.Or(f.config, deploy.ConfigFile)
	err = run.config.applyText(file, []byte(f.options.Config), lookup, &run.source)
	if len(*unknown) > 0 {
		err = errors.Join(err, usageError{errors.New("pods installed by \"quorate install\" have only the " +
			"environment variables that Kubernetes sets; to set others, use an overlay of deploy/base or deploy/loop")})
	}
	if err != nil {
		return err
	}
	if err := errors.Join(checkSourcesInPods(file, run), f.checkMount(run.config.content)); err != nil {
		return err
	}
	return errors.Join(run.checkInstalled(file), run.checkSettings())
}

// runArgs returns the flags of the runs in the manifests of a mode, except --config.
func runArgs(mode deploy.Mode) []string {
	if mode == deploy.Loop {
		return []string{"--loop", "--listen=:8080"}
	}
	return []string{"--until-converged", "--timeout=4m"}
}

// checkInstalled rejects what a run rejects in addition to invalid settings, and a setting that the flags of the
// Deployment would override.
func (f *runFlags) checkInstalled(file string) error {
	var problems []error
	if len(f.source.values) == 0 {
		problems = append(problems, fmt.Errorf("%s: sources is required: a list such as - location: "+
			"https://git.example.com/fleet.git", file))
	}
	if f.loop.on && f.live.places.several() {
		problems = append(problems, errLoopOfSeveral)
	}
	for _, v := range f.config.content.Values {
		if f.loop.on && v.Flag == "listen" && len(v.Items) > 0 && v.Items[0].Text != f.loop.listen {
			problems = append(problems, fmt.Errorf("%s:%d: %s: the Deployment sets --listen=%s, the address that its "+
				"probes use; remove the setting", file, v.Line, v.Name, f.loop.listen))
		}
		for _, item := range v.Items {
			if passwordInURL.MatchString(item.Written) {
				problems = append(problems, fmt.Errorf("%s:%d: %s: the URL contains a password or token, and anyone "+
					"who can read ConfigMaps would see it; use an overlay of deploy/base or deploy/loop that sets it "+
					"in an environment variable from a Secret", file, item.Line, v.Name))
			}
		}
	}
	return errors.Join(usage(problems), f.loop.check(f.config.given), f.approve.check(f.untilConverged, f.loop.on))
}

// checkRunFlags rejects arguments that quorate run does not accept, and flags that the installed file replaces. err is
// the result of parsing them.
func checkRunFlags(flags *pflag.FlagSet, err error) error {
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	if err != nil {
		return usageError{fmt.Errorf("flags for quorate run, after --: "+
			"%w; for the list, run \"quorate run --help\"", err)}
	}
	var problems []error
	for _, name := range []string{"config", "source"} {
		if flags.Changed(name) {
			problems = append(problems, fmt.Errorf("flags for quorate run, after --: --%s would replace the installed "+
				"settings; write all sources to a file, and put --config FILE before --", name))
		}
	}
	return usage(problems)
}

// findConfig sets the content of the configuration file: the file in --config, or one with the source in --source.
func (f *installFlags) findConfig(changed func(flag string) bool) error {
	if !changed("config") {
		if err := f.checkSource(); err != nil {
			return err
		}
		var err error
		f.options.Config, err = f.sourceConfig()
		return err
	}
	var problems []error
	for _, name := range []string{"branch", "path", "source"} {
		if changed(name) {
			problems = append(problems, fmt.Errorf("--config and --%s: remove --%[1]s, and set %s in the file", name,
				config.NameOf(name)))
		}
	}
	text, err := readConfig(f.config)
	if err != nil {
		problems = append(problems, fmt.Errorf("--config: %w", err))
	}
	f.options.Config = string(text)
	return usage(problems)
}

// sourceConfig returns a configuration file with the source in --source.
func (f *installFlags) sourceConfig() (string, error) {
	location, own, err := splitSource(f.source)
	if err != nil {
		return "", err
	}
	defaults, entry := map[string]any{}, map[string]any{"location": config.Literal(location)}
	for flag, value := range map[string]string{"branch": f.branch, "path": f.path} {
		if value != "" {
			defaults[flag] = config.Literal(value)
		}
	}
	if f.options.Private {
		defaults["credentials"] = deploy.Credentials
	}
	for _, s := range own {
		put(entry, s)
	}
	file := map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind, "sources": []any{entry},
		"log": map[string]any{"format": "json"}}
	if len(defaults) > 0 {
		file["sourceDefaults"] = defaults
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err = encoder.Encode(file)
	return text.String(), err
}

// put adds a setting to an entry of sources. The values of a repeated setting are collected in a list.
func put(entry map[string]any, s setting) {
	settings := slices.Concat(config.SourceSettings, config.TenantSettings)
	at := slices.IndexFunc(settings, func(known config.Setting) bool { return known.Flag == s.flag })
	name := s.flag
	if at >= 0 {
		name = settings[at].Name
	}
	if group, rest, grouped := strings.Cut(name, "."); grouped {
		inner, is := entry[group].(map[string]any)
		if !is {
			inner = map[string]any{}
			entry[group] = inner
		}
		entry, name = inner, rest
	}
	switch before := entry[name].(type) {
	case nil:
		entry[name] = config.Literal(s.value)
	case []any:
		entry[name] = append(before, config.Literal(s.value))
	default:
		entry[name] = []any{before, config.Literal(s.value)}
	}
}

// podVariables returns a function that looks up the environment variables of the pods, and the variables for which it
// was called but which the pods do not have.
func (f *installFlags) podVariables() (lookup func(name string) (string, bool), unknown *[]string) {
	known := map[string]string{
		"HOSTNAME": "quorate", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
	}
	if f.options.Mode == deploy.IndexedJob {
		known[indexVariable], known[completionsVariable] = "0", fmt.Sprint(f.options.Shards)
	}
	unknown = new([]string)
	return func(name string) (string, bool) {
		value, is := known[name]
		if !is {
			*unknown = append(*unknown, name)
		}
		return value, is
	}, unknown
}

// checkSource rejects a --source that pods cannot read.
func (f *installFlags) checkSource() error {
	if f.source == ofCluster {
		if f.branch+f.path != "" || f.options.Private {
			return usageError{fmt.Errorf("--source %s: no git repository is read; "+
				"remove --branch, --path and --private", f.source)}
		}
		return nil
	}
	if f.source == "" {
		return usageError{errors.New("--config or --source is required with --mode")}
	}
	s, err := newSource(budgetWithin(0).limits).with(f.source)
	if err != nil {
		return s.hide(err)
	}
	if address, err := remote.ParseAddress(s.Location); err == nil && address.Scheme == "ssh" && !f.options.Private {
		return usageError{fmt.Errorf("--source: ssh to %s requires a private key and known_hosts: store them in the "+
			"Secret quorate-git, and add --private", address.Host)}
	}
	return s.checkInPods("--source", f.options.Private)
}

// checkSourcesInPods rejects sources in a file that pods cannot read.
func checkSourcesInPods(file string, run *runFlags) error {
	_, err := run.source.sources(func(s source) error { return s.checkInPods(file+": sources", s.Credentials != "") })
	return errors.Join(run.source.settings.checkPasswords(), err)
}

// checkInPods rejects a source that pods cannot read. from is where it is specified.
func (s source) checkInPods(from string, private bool) error {
	if s.Location == ofCluster {
		return nil
	}
	if scheme, _, _ := strings.Cut(s.Location, "://"); private && strings.EqualFold(scheme, "http") {
		return usageError{errors.New("--private: the pods do not send credentials unencrypted; use https")}
	}
	if !remote.IsAddress(s.Location) {
		return usageError{fmt.Errorf("%s %q: expected the URL of a git repository, or %q: "+
			"pods cannot read directories on this machine", from, s.Location, ofCluster)}
	}
	return s.checkPasswords()
}

// checkMount rejects a file that uses the Secret quorate-git although it is not mounted, and the reverse.
func (f *installFlags) checkMount(content config.Configuration) error {
	values := slices.Concat(content.Values, content.Defaults)
	for _, s := range content.Sources {
		values = append(values, s.Values...)
	}
	uses := slices.ContainsFunc(values, func(v config.Value) bool {
		return slices.ContainsFunc(v.Items, func(i config.Item) bool {
			return strings.Contains(i.Text, deploy.Credentials)
		})
	})
	switch {
	case uses && !f.options.Private:
		return usageError{fmt.Errorf("%s reads %s, where --private mounts the Secret quorate-git; add --private",
			f.config, deploy.Credentials)}
	case !uses && f.options.Private:
		return usageError{fmt.Errorf("--private: %s does not read the mounted Secret quorate-git; set "+
			"sourceDefaults.credentials to %s, or remove --private", f.config, deploy.Credentials)}
	}
	return nil
}

// checkPasswords rejects URLs that contain credentials. The pods would also reject such URLs, but by then everyone who
// may read the pods could read the credentials.
func (s source) checkPasswords() error {
	if remote.IsAddress(s.Location) {
		if _, err := remote.ParseAddress(s.Location); err != nil {
			return usageError{fmt.Errorf("--source: %w", err)}
		}
	}
	if proxy, err := url.Parse(s.Proxy); err != nil || proxy.User != nil {
		return usageError{errors.New("proxy: the URL contains credentials or is invalid; set proxyUsername and " +
			"proxyPassword in the credentials of the source instead")}
	}
	return nil
}
