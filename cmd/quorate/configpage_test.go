package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/internal/config"
)

const configurationPage = "docs/reference/configuration.md"

// generatedBelow separates the text of the page from its tables.
const generatedBelow = "<!-- Generated below by go generate ./cmd/quorate. DO NOT EDIT. -->\n"

// TestConfigurationPage checks that docs/reference/configuration.md lists the existing settings. "go generate" writes
// the tables of the page.
func TestConfigurationPage(t *testing.T) {
	written, _, found := strings.Cut(read(t, configurationPage), generatedBelow)
	if !found {
		t.Fatalf("%s lacks %s", configurationPage, generatedBelow)
	}
	requirePage(t, configurationPage, written+generatedBelow+listSettings())
}

// groups describes the groups of settings.
var groups = map[string]string{
	"kubernetes":            "The Kubernetes clusters of the run, and its rights: [several Kubernetes clusters](../how-to/many-kubernetes-clusters.md), [shards](../how-to/shards.md), [rights](rights.md).",
	"etcd":                  "How etcd is reached.",
	"backup":                "For [backups](../how-to/back-up.md).",
	"limits":                "Limits of the run.",
	"loop":                  "For [`--loop`](../how-to/loop.md); ignored otherwise.",
	"notifications":         "[Webhooks](../how-to/notify.md#webhooks).",
	"commitStatus":          "[Commit status](../how-to/notify.md#commit-status).",
	"metrics":               "[Metrics](../how-to/monitor.md) of runs that end. A loop serves its metrics instead.",
	"log":                   "Messages on stderr.",
	"sourceDefaults":        "Defaults for every [source](sources.md). Each entry of `sources` may also have these settings.",
	"sourceDefaults.policy": "What [declarations may request](policy.md).",
	"sourceDefaults.limits": "The [limits](limits.md) of a source.",
}

// listSettings returns a table for each group of settings.
func listSettings() string {
	page := &strings.Builder{}
	f := &runFlags{}
	newRunOf(f, streams{})
	last := ""
	row := func(name string, flag *pflag.Flag) {
		if group := name[:strings.LastIndex(name, ".")]; group != last {
			last = group
			fmt.Fprintf(page, "\n## %s\n\n%s\n\n| setting | type | default | |\n|---|---|---|---|\n", group, groups[group])
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", name, typeOf(flag), defaultOf(flag), inTable(settingUsage(flag.Usage)))
	}
	for _, s := range config.Settings {
		row(s.Name, f.config.flags.Lookup(s.Flag))
	}
	for _, s := range config.SourceSettings {
		row(config.NameOf(s.Flag), f.config.flags.Lookup(s.Flag))
	}
	fmt.Fprint(page, "\n## sources\n\nA list of [sources](sources.md).\n\n| setting | type | |\n|---|---|---|\n"+
		"| `location` | string | URL of a git repository (or user@host:path), path of a local repository, or a directory; or `cluster`: the custom resources themselves are the declaration (required) |\n")
	for _, s := range config.TenantSettings {
		flag := f.config.flags.Lookup(s.Flag)
		usage := strings.ReplaceAll(settingUsage(flag.Usage), "kubernetes.", "")
		fmt.Fprintf(page, "| `%s` | %s | %s, for the clusters of this source |\n", s.Name, typeOf(flag), inTable(usage))
	}
	fmt.Fprint(page, "| every setting of `sourceDefaults` | | overrides the default for this source |\n")
	return page.String()
}

// typeOf returns the type of a setting.
func typeOf(flag *pflag.Flag) string {
	switch kind := flag.Value.Type(); {
	case flag.Name == string(policy.LockTimes):
		return "duration"
	case flag.Name == string(policy.BackupsPerDay):
		return "int"
	case isList(flag):
		return "list"
	case kind == "bool" || kind == "int" || kind == "duration" || kind == "bytes":
		return kind
	}
	return "string"
}

var (
	configFile = regexp.MustCompile("(?s)```yaml\n(# (?:quorate|pull-request).yaml\n.*?)```")
	configPart = regexp.MustCompile("(?s)```yaml\n(# in quorate.yaml\n.*?)```")
	variables  = regexp.MustCompile(`\$\(([A-Z_]+)\)`)
)

// TestDocumentedConfigurationsAreValid checks that all configuration files in the docs, and all parts of them, are
// valid.
func TestDocumentedConfigurationsAreValid(t *testing.T) {
	var all []string
	for _, page := range pages(t) {
		text := read(t, page)
		for _, match := range configFile.FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
		for _, match := range configPart.FindAllStringSubmatch(text, -1) {
			all = append(all, "apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+match[1])
		}
	}
	for _, text := range all {
		for _, variable := range variables.FindAllStringSubmatch(text, -1) {
			t.Setenv(variable[1], "https://example.com/")
		}
		file := filepath.Join(t.TempDir(), "quorate.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var printed bytes.Buffer
		if code := execute(t.Context(), []string{"config", "--config", file}, streams{out: &printed, err: &printed}); code != exitOK {
			t.Errorf("%s\n%s", text, printed.String())
		}
	}
	if len(all) < 15 {
		t.Errorf("%d configuration files", len(all))
	}
}

// TestConfigurationForPullRequests checks the commands and the file for pull requests in
// docs/how-to/limit-what-a-team-may-declare.md: they accept what the policy of the run allows, and refuse everything else.
func TestConfigurationForPullRequests(t *testing.T) {
	page := read(t, "docs/how-to/limit-what-a-team-may-declare.md")
	file := regexp.MustCompile("(?s)```yaml\n(# pull-request.yaml\n.*?)```").FindStringSubmatch(page)
	commands := regexp.MustCompile(`(?m)^quorate (.* --source .*)$`).FindAllStringSubmatch(page, -1)
	if file == nil || len(commands) != 2 {
		t.Fatalf("%q, %q", file, commands)
	}
	cluster := func(namespace, pool string) string {
		return fmt.Sprintf("{apiVersion: etcd.quorate.dev/v1alpha1, kind: EtcdCluster, metadata: {name: a, namespace: %s}, "+
			"spec: {version: 3.6.16, storage: {size: 8Gi}, image: {repository: registry.example.com/etcd}, "+
			"pod: {nodeSelector: {pool: %s}}}}\n", namespace, pool)
	}
	r := gittest.NewRepository(t)
	r.Write("a.yaml", cluster("shop", "shop"))
	r.Git("update-ref", "refs/remotes/origin/main", r.Commit())
	dir := t.TempDir()
	gittest.MustWrite(t, filepath.Join(dir, "pull-request.yaml"), file[1])
	if err := os.Symlink(r.Dir, filepath.Join(dir, "shop")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, c := range []struct {
		namespace, pool string
		code            int
	}{{"shop", "shop", exitOK}, {"shop", "bank", exitInvalid}, {"bank", "shop", exitInvalid}} {
		r.Write("a.yaml", cluster(c.namespace, c.pool))
		r.Commit()
		for _, command := range commands {
			var printed bytes.Buffer
			code := execute(t.Context(), strings.Fields(command[1]), streams{out: &printed, err: &printed})
			if code != c.code {
				t.Errorf("%s, namespace %s, pool %s: exit code %d, want %d\n%s", command[1], c.namespace, c.pool, code, c.code, printed.String())
			}
		}
	}
}

// TestLimitsPageListsRatios checks that docs/reference/limits.md lists the limits that follow from a setting.
func TestLimitsPageListsRatios(t *testing.T) {
	page, d := read(t, "docs/reference/limits.md"), sources.DefaultLimits
	ratio := func(setting string, value, of int64) string {
		switch {
		case value > of:
			return fmt.Sprintf("`%s` × %d", setting, value/of)
		case value < of:
			return fmt.Sprintf("`%s` / %d", setting, of/value)
		}
		return "`" + setting + "`"
	}
	var want []string
	for _, bytes := range []int64{d.Files.FileBytes, d.Transfer.RefsBytes, d.Transfer.Pack.ObjectBytes, d.Transfer.PackBytes,
		d.Transfer.Pack.InflatedBytes} {
		want = append(want, fmt.Sprintf("| %s | %s |\n", (*byteSize)(&bytes), ratio("bytes", bytes, d.Files.TotalBytes)))
	}
	for _, n := range []int{d.Files.Kustomizations, d.Files.Keys, d.Files.Files, d.Files.Documents, d.Files.DocumentNodes,
		d.Transfer.Pack.Objects, d.Files.TotalNodes} {
		want = append(want, fmt.Sprintf("| %d | %s |\n", n, ratio("objects", int64(n), int64(d.Files.Objects))))
	}
	perObject := float64(d.Files.KeptBytes) / float64(d.Files.Objects) / (1 << 20)
	want = append(want, fmt.Sprintf("| %s | `objects` × %.1fMi |\n", (*byteSize)(&d.Files.KeptBytes), perObject),
		fmt.Sprintf("| %d | fixed |\n", d.Files.Depth), fmt.Sprintf("| %d | fixed |\n", d.Files.Nesting))
	for _, row := range want {
		if !strings.Contains(page, row) {
			t.Errorf("docs/reference/limits.md lacks %s", row)
		}
	}
}
