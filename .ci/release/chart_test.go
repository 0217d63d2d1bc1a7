package main

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
	"quorate.dev/quorate/deploy"
)

const chartDir = "../../deploy/chart"

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values returns the chart values that correspond to the options.
func values(o deploy.Options) object {
	v := object{
		"mode": string(o.Mode), "image": o.Image, "source": o.Source, "branch": o.Branch, "path": o.Path,
		"private": o.Private, "networkPolicy": o.NetworkPolicy,
	}
	if o.Shards != 0 {
		v["shards"] = o.Shards
	}
	if o.Args != nil {
		args := []any{}
		for _, a := range o.Args {
			args = append(args, a)
		}
		v["args"] = args
	}
	return v
}

// template renders the chart as "helm install" would apply it to namespace, or returns an error if values are
// rejected.
func template(t *testing.T, c *chart.Chart, namespace string, values object) (map[string]object, error) {
	t.Helper()
	release := common.ReleaseOptions{Name: "any", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") {
			texts = append(texts, text)
		}
	}
	return objects(t, texts...), nil
}

// kustomized renders the same objects with package deploy. It omits the namespace, which must already exist when a
// release is installed.
func kustomized(t *testing.T, o deploy.Options) map[string]object {
	t.Helper()
	texts, err := deploy.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, texts...)
	const namespace = "Namespace <nil>/" + deploy.Namespace
	if all[namespace] == nil {
		t.Fatalf("there is no %s", namespace)
	}
	delete(all, namespace)
	return all
}

// combinations returns every mode with every combination of options.
func combinations() []deploy.Options {
	var all []deploy.Options
	for _, mode := range deploy.Modes() {
		for _, source := range []string{"https://git.example.com/fleet.git", deploy.Cluster} {
			for i := range 1 << 4 {
				is := func(bit int) bool { return i&(1<<bit) != 0 }
				o := deploy.Options{
					Mode: mode, Image: "registry.example.com:5000/quorate@sha256:1234", Source: source,
					Private: is(0), NetworkPolicy: is(1),
				}
				if is(2) {
					o.Branch, o.Path, o.Shards = "main", "clusters/prod", 7
				}
				if is(3) {
					o.Args = []string{"--max-deletions=3", "--namespace", "shop"}
				}
				if source == deploy.Cluster { // without a repository, the repository settings are empty
					if o.Branch, o.Path = "", ""; o.Private {
						continue
					}
				}
				all = append(all, o)
			}
		}
	}
	return all
}

// TestChartIsWhatIsInstalled checks that the chart renders the same objects as the kustomizations, in every mode and
// with all options.
func TestChartIsWhatIsInstalled(t *testing.T) {
	c := load(t)
	for _, o := range combinations() {
		got, err := template(t, c, deploy.Namespace, values(o))
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if requireSame(t, got, kustomized(t, o)); t.Failed() {
			t.Fatalf("with %+v", o)
		}
	}
}

// TestChartInAnotherNamespace checks that the objects are the same in a different namespace and do not mention the
// default namespace.
func TestChartInAnotherNamespace(t *testing.T) {
	o := deploy.Options{Mode: deploy.Loop, Image: "quorate", Source: "https://git.example.com/fleet.git", NetworkPolicy: true}
	texts, err := deploy.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], deploy.Namespace, "other")
	}
	want := objects(t, texts...)
	delete(want, "Namespace <nil>/other")
	got, err := template(t, load(t), "other", values(o))
	if err != nil {
		t.Fatal(err)
	}
	requireSame(t, got, want)
}

// hostile lists values that an attacker might choose, or that YAML treats specially.
var hostile = []string{
	`'quoted'`, `"quoted"`, `'`, `"`, `''`, "`", `\`, `\n`, `\"`, ` `, ` space `, `a: b`, `a #b`, `#`, `- a`, `{`, `{}`, `[]`, `*a`, `&a`, `!a`,
	`|`, `>`, `%`, `@`, `~`, `null`, `true`, `yes`, `1`, `1.10`, `1e3`, `0x1f`, `2020-01-01`, `---`, `...`, `=`, `<<`, `,`,
	`{{ .Release.Name }}`, `{{ fail "no" }}`, `{{`, `}}`, `{{/*`, `$(SOURCE)`, `$(HOME)`, `$$(SOURCE)`, `${HOME}`, `<&>`, `ä€😀`,
	"\u00a0", "\u200b", "\ue000", "\ufffd", "a\u0301", "\U0010ffff", strings.Repeat("long ", 100),
	// These are rejected:
	"a\nb", "a\n---\nkind: Secret", "\ta", "a\rb", "\x00", "\x1b[1m", "\x7f", "\u0085", "\u2028", "\u2029", "\ufeff", "\ufffe",
}

// refused contains characters that values must not contain, because they end a line in YAML or are not allowed in YAML.
const refused = "\n\t\r\x00\x1b\x7f\u0085\u2028\u2029\ufeff\ufffe"

// TestHostileValues checks that each value either appears unchanged in the objects or is rejected by the schema.
func TestHostileValues(t *testing.T) {
	c := load(t)
	for _, h := range hostile {
		o := deploy.Options{
			Mode: deploy.IndexedJob, Image: "quorate" + strings.ReplaceAll(h, " ", "_"), Source: "https://git.example.com/" + h,
			Branch: h, Path: h, Args: []string{h, "--x=" + h},
		}
		if strings.ContainsAny(h, refused) {
			requireRefused(t, c, o)
			continue
		}
		got, err := template(t, c, deploy.Namespace, values(o))
		if err != nil {
			t.Fatalf("%q is refused: %v", h, err)
		}
		if requireSame(t, got, kustomized(t, o)); t.Failed() {
			t.Fatalf("with %q", h)
		}
	}
}

// requireRefused requires that each of the values is rejected on its own.
func requireRefused(t *testing.T, c *chart.Chart, o deploy.Options) {
	t.Helper()
	for _, name := range []string{"image", "source", "branch", "path", "args"} {
		v := object{"image": "quorate", "source": "https://git.example.com/fleet.git"}
		v[name] = values(o)[name]
		if _, err := template(t, c, deploy.Namespace, v); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %q is refused with %v", name, v[name], err)
		}
	}
}

// TestSchema checks that values that cannot work are rejected, and that the error names the value.
func TestSchema(t *testing.T) {
	c := load(t)
	good := func() object { return object{"image": "quorate", "source": "https://git.example.com/fleet.git"} }
	if _, err := template(t, c, deploy.Namespace, good()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		name  string
		value any
	}{
		{"image", ""}, {"image", "a b"}, {"image", nil}, {"source", ""}, {"source", "/srv/fleet"}, {"source", "fleet"}, {"source", `C:\fleet`[2:]},
		{"source", nil}, {"mode", "daemon"}, {"mode", ""}, {"mode", nil}, {"branch", 1.10}, {"path", true}, {"private", "yes"},
		{"networkPolicy", 1}, {"shards", 0}, {"shards", 1.5}, {"shards", "4"}, {"shards", 100001}, {"args", "--x"}, {"args", []any{1}}, {"args", []any{""}},
		{"shard", 4},
	} {
		v := good()
		v[bad.name] = bad.value
		if _, err := template(t, c, deploy.Namespace, v); err == nil || !strings.Contains(err.Error(), bad.name) {
			t.Errorf("%s: %#v is refused with %v", bad.name, bad.value, err)
		}
	}
	for source, private := range map[string]bool{"http://git.example.com/a": true, "HTTP://git.example.com/a": true,
		"ssh://git@git.example.com/a": false, "git@git.example.com:a": false, "git@git.example.com:/a": false} {
		v := good()
		v["source"], v["private"] = source, private
		if _, err := template(t, c, deploy.Namespace, v); err == nil || !strings.Contains(err.Error(), "private") {
			t.Errorf("%s with private %t is refused with %v", source, private, err)
		}
		v["private"] = !private
		if _, err := template(t, c, deploy.Namespace, v); err != nil {
			t.Errorf("%s with private %t: %v", source, !private, err)
		}
	}
	for _, own := range []object{{"source": "git@git.example.com:a,git-credentials=/keys"},
		{"source": "git@git.example.com:a", "args": []any{"--max-deletions=3", "--git-credentials=/keys"}}} {
		v := good()
		maps.Copy(v, own)
		if _, err := template(t, c, deploy.Namespace, v); err != nil {
			t.Errorf("%v: %v", own, err)
		}
	}
	for name, value := range map[string]any{"branch": "main", "path": "a", "private": true} {
		v := good()
		v["source"], v[name] = deploy.Cluster, value
		if _, err := template(t, c, deploy.Namespace, v); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("with the source %s, %s is refused with %v", deploy.Cluster, name, err)
		}
	}
}

// TestCredentials checks that a URL with a password is rejected without repeating the password, because anyone who may
// read a ConfigMap or Deployment could see it.
func TestCredentials(t *testing.T) {
	c := load(t)
	for _, url := range []string{"https://u:s3cret@git.example.com/a", "HTTPS://s3cret@git.example.com/a", "http://u:s3,cret@git.example.com/a", "ssh://u:s3cret@git.example.com/a"} {
		for name, value := range map[string]any{"source": url, "args": []any{"--max-deletions=3", "--source=" + url}} {
			v := object{"image": "quorate", "source": "https://git.example.com/fleet.git"}
			v[name] = value
			if _, err := template(t, c, deploy.Namespace, v); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "cret") {
				t.Errorf("%s: %q is refused with %v", name, value, err)
			}
		}
	}
	for _, url := range []string{"ssh://git@git.example.com/a", "git@git.example.com:a", "https://git.example.com/a@b", "https://git.example.com/a,as=system:serviceaccount:b:c"} {
		v := object{"image": "quorate", "source": url, "private": !strings.HasPrefix(url, "https:"), "args": []any{"--source=" + url, "--default-namespace=a"}}
		if _, err := template(t, c, deploy.Namespace, v); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// TestNamespaceIsLabelled checks that the documentation tells users to create the namespace with the labels in
// deploy/base. Clusters with a NetworkPolicy identify Quorate by one of these labels.
func TestNamespaceIsLabelled(t *testing.T) {
	texts, err := deploy.Render(deploy.Options{Mode: deploy.Loop, Image: "quorate", Source: deploy.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	metadata := objects(t, texts...)["Namespace <nil>/"+deploy.Namespace]["metadata"].(object)
	page := readFile(t, root+"/docs/how-to/install.md")
	_, command, _ := strings.Cut(page, "\nkubectl label namespace "+deploy.Namespace+" ")
	command, _, _ = strings.Cut(command, "\n")
	given := strings.Fields(command)
	for key, value := range metadata["labels"].(object) {
		if label := key + "=" + value.(string); !slices.Contains(given, label) {
			t.Errorf("who follows docs/how-to/install.md labels the namespace with %q, and not with %s", given, label)
		}
	}
	notes := readFile(t, chartDir+"/templates/NOTES.txt")
	if label := "kubectl label namespace {{ .Release.Namespace }} app.kubernetes.io/name=quorate\n"; !strings.Contains(notes, label) {
		t.Errorf("the notes do not say %q", label)
	}
}

// TestValuesAreAll checks that every value is in both the schema and values.yaml, and that the schema lists exactly the
// modes that exist.
func TestValuesAreAll(t *testing.T) {
	c := load(t)
	var schema struct {
		Properties map[string]struct{ Enum []deploy.Mode }
	}
	if err := yaml.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for name := range values(deploy.Options{Shards: 1, Args: []string{}}) {
		_, described := schema.Properties[name]
		_, is := c.Values[name]
		if !described || !is {
			t.Errorf("%s is in the schema: %v; in values.yaml: %v", name, described, is)
		}
	}
	if modes := schema.Properties["mode"].Enum; !slices.Equal(modes, deploy.Modes()) {
		t.Errorf("the modes are %q, want %q", modes, deploy.Modes())
	}
}

// TestDefinition checks that the chart contains the generated CustomResourceDefinition, which "make generate" copies.
func TestDefinition(t *testing.T) {
	copied, err := os.ReadFile(chartDir + "/files/etcdclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(copied, crd.YAML) {
		t.Error("deploy/chart has another definition than clusters/v1alpha1/crd: make generate")
	}
}
