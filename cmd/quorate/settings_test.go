package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	"quorate.dev/quorate/internal/config"
)

// withSettings returns the arguments, with those of the form NAME=VALUE, such as etcd.timeout=8s, replaced with a
// configuration file.
func withSettings(t *testing.T, args ...string) []string {
	t.Helper()
	var rest, settings []string
	for _, arg := range args {
		if name, _, is := strings.Cut(arg, "="); is && isSetting(name) {
			settings = append(settings, arg)
			continue
		}
		rest = append(rest, arg)
	}
	if len(settings) == 0 {
		return rest
	}
	file := filepath.Join(t.TempDir(), "quorate.yaml")
	if err := os.WriteFile(file, configuration(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(rest, "--config="+file)
}

func isSetting(name string) bool {
	return slices.ContainsFunc(slices.Concat(config.Settings, config.SourceSettings),
		func(s config.Setting) bool { return config.NameOf(s.Flag) == name })
}

// configuration returns the configuration file for settings of the form NAME=VALUE.
func configuration(settings []string) []byte {
	top := map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		group, parts := top, strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			if group[part] == nil {
				group[part] = map[string]any{}
			}
			group = group[part].(map[string]any)
		}
		if group[parts[len(parts)-1]] = value; value == "" {
			group[parts[len(parts)-1]] = []string{}
		}
	}
	text, err := yaml.Marshal(top)
	if err != nil {
		panic(err) // strings can be marshaled
	}
	return text
}

// configure writes a configuration file:
//
//	configure FILE etcd.timeout=8s loop.resync=1m
func configure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: configure file name=value...")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), configuration(args[1:]), 0o600))
}
