package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/quorate/internal/config"
)

const header = "apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\n"

func environment(name string) (string, bool) {
	value, set := map[string]string{"TOKEN": "hunter2", "NONE": ""}[name]
	return value, set
}

func hasAll(string) bool { return true }

// TestParseExpandsOnlySettingsOfTheCommand checks that variables in settings that the command ignores may be unset.
func TestParseExpandsOnlySettingsOfTheCommand(t *testing.T) {
	file := []byte(header + "notifications: {webhooks: [$(UNSET)]}\nsourceDefaults: {branch: $(UNSET)}\n" +
		"sources: [{location: $(UNSET), as: $(UNSET)}]\n")
	c, problems := config.Parse(file, environment, func(string) bool { return false })
	if len(problems) > 0 || c.Values[0].Items[0].Text != "$(UNSET)" {
		t.Errorf("%v, %v", c, problems)
	}
	has := func(flag string) bool { return flag == "branch" || flag == "source" }
	if _, problems := config.Parse(file, environment, has); len(problems) != 2 {
		t.Error(problems)
	}
}

// text formats values, one per line.
func text(values []config.Value) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%d %s --%s list=%t", v.Line, v.Name, v.Flag, v.List)
		for _, item := range v.Items {
			fmt.Fprintf(&b, " %s", item.Text)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	c, problems := config.Parse([]byte(header+`
# ours
etcd: {timeout: 8s}
metrics:
  # file: x
notifications:
  webhooks:
  - https://hooks.example.com/$(TOKEN)
  - "@/etc/$$(TOKEN)"
sourceDefaults:
  tag: 1.10
  limits:
    objects: 500
sources:
- location: https://git.example.com/a.git
  policy: {labels: [team=a, team=b]}
  as: quorate:tenant:a
- location: b
`), environment, hasAll)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := text(c.Values) + "defaults\n" + text(c.Defaults)
	for _, s := range c.Sources {
		got += fmt.Sprintln(s.Line, s.Name, s.Location.Items[0].Text) + text(s.Values)
	}
	want := `5 etcd.timeout --etcd-timeout list=false 8s
10 notifications.webhooks --notify list=true https://hooks.example.com/hunter2 @/etc/$(TOKEN)
defaults
13 sourceDefaults.tag --tag list=false 1.10
15 sourceDefaults.limits.objects --max-objects list=false 500
17 sources[0] https://git.example.com/a.git
18 sources[0].policy.labels --allow-label list=true team=a team=b
19 sources[0].as --as list=false quorate:tenant:a
20 sources[1] b
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if written := c.Values[1].Items[0].Written; written != "https://hooks.example.com/$(TOKEN)" {
		t.Error(written)
	}
}

// TestParseReportsAllProblems checks that all problems are reported together, with their lines and without the values
// of variables.
func TestParseReportsAllProblems(t *testing.T) {
	c, problems := config.Parse([]byte(`kind: Config
etcd:
  timeout: 8s
  timeout: 9s
  timout: 1s
  access: ~
loop: 7
log: {format: ""}
commitStatus:
  host: $(UNSET)
  context: $(TOKEN)$(NONE)
  tokenFile: {a: b}
sources:
- path: x
- location: y
  colour: red
- location:
- z
sourceDefaults:
  as: someone
colour: red
branch: main
policy: {labels: a}
backup: {image: &i a, image: *i}
metrics: {file: *i}
`), environment, hasAll)
	var got strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&got, "%d: %s\n", p.Line, p.Message)
	}
	want := `1: apiVersion: config.quorate.dev/v1alpha1 is required
1: kind: expected Configuration, found "Config"
4: etcd.timeout is already set on line 3
5: etcd: unknown setting "timout"; expected one of access, timeout
6: etcd.access: the value is missing; omit the setting
7: loop: expected settings: listen, gitInterval, etcdInterval, resync
8: log.format: the value is empty; omit the setting
10: commitStatus.host: the environment variable UNSET is not set
11: commitStatus.context: the environment variable NONE is empty
12: commitStatus.tokenFile: expected a value
14: sources[0].location is required
16: sources[1]: unknown setting "colour"; expected one of `
	if !strings.HasPrefix(got.String(), want) || len(c.Values) > 0 {
		t.Error(cmp.Diff(want, got.String()))
	}
	for _, want := range []string{
		"17: sources[2].location: the value is missing; omit the setting\n", "18: sources[3]: expected settings: location, branch, ",
		"20: sourceDefaults: unknown setting \"as\"; did you mean kubernetes.as?\n", `21: the file: unknown setting "colour"; expected one of kubernetes, etcd, `,
		`22: the file: unknown setting "branch"; did you mean sourceDefaults.branch?` + "\n",
		`23: the file: unknown setting "policy"; did you mean sourceDefaults.policy?` + "\n",
		"24: backup.image is already set on line 24\n", "25: metrics.file: aliases are not supported; repeat the value\n",
	} {
		if !strings.Contains(got.String(), "\n"+want) {
			t.Errorf("no %q in\n%s", want, got.String())
		}
	}
	if strings.Contains(got.String(), "hunter2") {
		t.Error(got.String())
	}
}

func TestParseRejectsOtherFiles(t *testing.T) {
	for file, want := range map[string]string{
		"":                        "1: the file is empty: expected apiVersion: config.quorate.dev/v1alpha1 and kind: Configuration",
		"a: b: c":                 "1: mapping values are not allowed in this context",
		header + "---\nkind: x\n": "3: expected one document",
		"- a":                     "1: the file: expected settings: ",
		header + "sources: []":    "3: sources: expected a list of sources: - location: URL or directory",
		header + "sources: a":     "3: sources: expected a list of sources: - location: URL or directory",
		header + strings.Repeat(" ", config.MostBytes): "1: the file is larger than 1048576 bytes",
	} {
		_, problems := config.Parse([]byte(file), environment, hasAll)
		if len(problems) == 0 || !strings.HasPrefix(fmt.Sprintf("%d: %s", problems[0].Line, problems[0].Message), want) {
			t.Errorf("%.60q: %v, want %s", file, problems, want)
		}
	}
}

// TestSettingsAreUnambiguous checks that no two settings have the same name or the same flag.
func TestSettingsAreUnambiguous(t *testing.T) {
	for _, list := range [][]config.Setting{config.Settings, append(config.SourceSettings, config.TenantSettings...)} {
		seen := map[string]bool{}
		for _, s := range list {
			for _, key := range []string{"setting " + s.Name, "flag " + s.Flag} {
				if seen[key] {
					t.Errorf("%s appears twice", key)
				}
				seen[key] = true
			}
		}
	}
	for flag, want := range map[string]string{"etcd-timeout": "etcd.timeout", "path": "sourceDefaults.path", "source": "sources", "loop": ""} {
		if got := config.NameOf(flag); got != want {
			t.Errorf("%s: %q, want %q", flag, got, want)
		}
	}
}
