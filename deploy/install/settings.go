package install

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/internal/config"
	"quorate.dev/quorate/internal/printable"
)

// ofMode lists the flags whose presence depends on the mode and the source.
var ofMode = []string{"loop", "listen", "until-converged", "timeout", "branch", "path", "config"}

// ofContent lists the flags that distinguish sources with the same location, as in gitsource/sources. That package is
// not imported here, because it would pull in all the code that reads git.
var ofContent = []string{"branch", "tag", "semver", "ref", "commit", "path", "default-namespace"}

// lostSettings returns the names of settings and flags that runs, or single sources, had before but no longer have. It
// omits their values, which may be secrets.
func lostSettings(before, after []*unstructured.Unstructured) []string {
	var lost []string
	have := slices.Clone(ofMode)
	for _, object := range after {
		have = append(have, flagsIn(object)...)
	}
	for _, object := range before {
		for _, flag := range flagsIn(object) {
			if !slices.Contains(have, flag) {
				have = append(have, flag)
				lost = append(lost, cmp.Or(config.NameOf(flag), "--"+flag))
			}
		}
	}
	previous, now := sourceSettings(before), sourceSettings(after)
	compare := func(same func(a, b settingsOfSource) bool) {
		previous = slices.DeleteFunc(previous, func(p settingsOfSource) bool {
			at := slices.IndexFunc(now, func(n settingsOfSource) bool { return same(p, n) })
			if at < 0 {
				return false
			}
			for _, flag := range p.flags {
				if name := config.NameOf(flag); !slices.Contains(now[at].flags, flag) && !slices.Contains(lost, name) {
					lost = append(lost, strings.TrimPrefix(name, "sourceDefaults.")+" of "+printable.Line(p.location))
				}
			}
			now = slices.Delete(now, at, at+1)
			return true
		})
	}
	compare(func(a, b settingsOfSource) bool { return a.location == b.location && maps.Equal(a.content, b.content) })
	compare(func(a, b settingsOfSource) bool { return a.location == b.location })
	slices.Sort(lost)
	return slices.Compact(lost)
}

// settingsOfSource lists the flags that are set for a source in a configuration file. content maps the flags in
// ofContent to their values.
type settingsOfSource struct {
	location string
	content  map[string]string
	flags    []string
}

// sourceSettings returns the flags that are set for each source in the configuration files in ConfigMaps.
func sourceSettings(objects []*unstructured.Unstructured) []settingsOfSource {
	var list []settingsOfSource
	for _, object := range objects {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		file := configFile(object)
		for _, source := range file.Sources {
			s := settingsOfSource{source.Location.Items[0].Written, map[string]string{}, []string{"source"}}
			for _, v := range slices.Concat(file.Defaults, source.Values) {
				if slices.Contains(ofContent, v.Flag) && len(v.Items) > 0 {
					s.content[v.Flag] = v.Items[0].Written
				}
				s.flags = append(s.flags, v.Flag)
			}
			list = append(list, s)
		}
	}
	return list
}

// flagsIn returns the flags set by the arguments of a workload, or by the configuration file in a ConfigMap.
func flagsIn(object *unstructured.Unstructured) []string {
	if object.GetKind() == "ConfigMap" {
		return flagsInFile(object)
	}
	var flags []string
	for _, arg := range argsOf(object) {
		if found := flagName.FindStringSubmatch(arg); found != nil {
			flags = append(flags, found[1])
		}
	}
	return flags
}

// flagName matches an argument that is a flag, with or without a value.
var flagName = regexp.MustCompile(`^--?([a-z][a-z-]*)(=|$)`)

func flagsInFile(configMap *unstructured.Unstructured) []string {
	file := configFile(configMap)
	var flags []string
	values := slices.Concat(file.Values, file.Defaults)
	for _, source := range file.Sources {
		flags = append(flags, "source")
		values = append(values, source.Values...)
	}
	for _, v := range values {
		flags = append(flags, v.Flag)
	}
	return flags
}

// configFile returns the configuration file in a ConfigMap, with variables that are not expanded, or nothing if it is
// invalid.
func configFile(configMap *unstructured.Unstructured) config.Configuration {
	text, _, _ := unstructured.NestedString(configMap.Object, "data", deploy.ConfigFile)
	unexpanded := func(string) bool { return false }
	file, _ := config.Parse([]byte(text), nil, unexpanded)
	return file
}

// argsOf returns the arguments of the quorate container, or nil if the object has no such container.
func argsOf(object *unstructured.Unstructured) []string {
	for _, container := range listIn(object, "containers") {
		if name, _, _ := unstructured.NestedString(container, "name"); name == "quorate" {
			args, _, _ := unstructured.NestedStringSlice(container, "args")
			return args
		}
	}
	return nil
}

// listIn returns a list from the pod template of a workload.
func listIn(workload *unstructured.Unstructured, name string) (list []map[string]any) {
	path := []string{"spec", "template", "spec", name}
	if workload.GetKind() == "CronJob" {
		path = append([]string{"spec", "jobTemplate"}, path...)
	}
	items, _, _ := unstructured.NestedSlice(workload.Object, path...)
	for _, item := range items {
		if fields, is := item.(map[string]any); is {
			list = append(list, fields)
		}
	}
	return list
}

// mountedConfigs returns the ConfigMaps that the workloads mount.
func (i Installer) mountedConfigs(
	ctx context.Context, objects []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, workload := range objects {
		for _, volume := range listIn(workload, "volumes") {
			name, _, _ := unstructured.NestedString(volume, "configMap", "name")
			if name == "" {
				continue
			}
			like := configMaps()
			like.SetName(name)
			object, err := i.Client.Find(ctx, like)
			if err != nil {
				return nil, err
			}
			if object != nil {
				found = append(found, object)
			}
		}
	}
	return found, nil
}

// configMaps returns an object that identifies the ConfigMaps in Quorate's namespace.
func configMaps() *unstructured.Unstructured {
	like := &unstructured.Unstructured{}
	like.SetAPIVersion("v1")
	like.SetKind("ConfigMap")
	like.SetNamespace(deploy.Namespace)
	return like
}
