package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStatus checks the output of quorate status: one line per cluster, all details of one cluster, and selected
// clusters.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "own", "also")
	if got := w.command("status"); got.code != exitOK || got.out != "no clusters\n" {
		t.Errorf("of nothing: %+v", got)
	}
	w.made("own/one", "own/two", "also/one")
	if got := w.run("--source", "cluster"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	lines := func(args ...string) []string {
		t.Helper()
		got := w.command(append([]string{"status"}, args...)...)
		if got.code != exitOK {
			t.Errorf("status %q: %+v", args, got)
		}
		var names []string
		for line := range strings.Lines(got.out) {
			names = append(names, strings.Fields(line)[0])
		}
		return names
	}
	const title = "NAMESPACE/NAME"
	for args, want := range map[string][]string{
		"":                    {title, "also/one", "own/one", "own/two"},
		"--sort-by state":     {title, "also/one", "own/one", "own/two"},
		"--namespace own":     {title, "own/one", "own/two"},
		"--verdict done,wait": {title, "also/one", "own/one", "own/two"},
		"--verdict Block":     {"no"},
		"-l app.kubernetes.io/managed-by=quorate":   {title, "also/one", "own/one", "own/two"},
		"-l app.kubernetes.io/managed-by!=quorate":  {"no"},
		"-l app.kubernetes.io/managed-by,more=else": {"no"},
	} {
		if got := lines(strings.Fields(args)...); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("status %s: %q, want %q", args, got, want)
		}
	}
	if got := w.command("status", "own/one"); got.code != exitOK || !strings.HasPrefix(got.out, "own/one  Done   NothingRuns\n") || !strings.Contains(got.out, "Stalled=False") || strings.Contains(got.out, "two") {
		t.Errorf("of one: %+v", got)
	}
	if got := w.command("status", "one", "-n", "also", "-o", "json"); got.code != exitOK || !strings.HasPrefix(got.out, "{\n  \"namespace\": \"also\"") || strings.Contains(got.out, `"own"`) {
		t.Errorf("of one as JSON: %+v", got)
	}
	if got := w.command("status", "-o", "name"); got.code != exitOK || got.out != "etcdcluster.etcd.quorate.dev/one --namespace also\netcdcluster.etcd.quorate.dev/one --namespace own\netcdcluster.etcd.quorate.dev/two --namespace own\n" {
		t.Errorf("names: %+v", got)
	}
	if got := w.command("status", "own/one", "-o", "yaml"); got.code != exitOK || !strings.Contains(got.out, "\nname: one\nnamespace: own\n") || !strings.Contains(got.out, "\n  type: Stalled\n") {
		t.Errorf("of one as YAML: %+v", got)
	}
	for _, wrong := range [][]string{{"none/one"}, {"one"}} {
		if got := w.command(append([]string{"status"}, wrong...)...); got.code != exitError || !strings.Contains(got.err, "Quorate has not applied a cluster with that name") {
			t.Errorf("status %q: %+v", wrong, got)
		}
	}
}

// TestStatusShowsRevisionAge checks that the age of a revision is based on its git committer time.
func TestStatusShowsRevisionAge(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "own")
	w.made("own/one")
	commit := w.push("own", "own/one")
	if got := w.run(w.sources("own")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	seconds, err := strconv.ParseInt(w.git("own", "log", "-1", "--format=%ct"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := time.Unix(seconds, 0).UTC()
	if s := w.cluster("own/one").Status; s.DeclaredRevision != "main@sha1:"+commit || !s.DeclaredRevisionTime.Time.Equal(want) {
		t.Errorf("%s of %s, want %s", s.DeclaredRevision, s.DeclaredRevisionTime, want)
	}
	if got := w.command("status", "own/one"); !strings.Contains(got.out, "declared by main@sha1:"+commit+" (") {
		t.Errorf("%+v", got)
	}
	if got := w.command("status", "own/one", "-o", "json"); !strings.Contains(got.out, `"revisionTime": "`+want.Format(time.RFC3339)+`"`) {
		t.Errorf("%+v", got)
	}
	if got := w.command("status"); !strings.Contains(got.out, "  "+commit[:7]+" (") {
		t.Errorf("%+v", got)
	}
}

// TestStatusReportsSpecThatIsNotApplied checks that status and explain, which do not read git, show that the last pass
// could not apply the newest spec, until a pass applies it.
func TestStatusReportsSpecThatIsNotApplied(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "own")
	w.made("own/one")
	const declaration = "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: one, namespace: own}\nspec: {version: 3.6.16, lifecycle: Stopped, storage: {size: %s}}\n"
	for size, want := range map[string]int{"8Gi": exitOK, "4Gi": exitInvalid, "much": exitInvalid} {
		w.push("own", fmt.Sprintf(declaration, "8Gi"))
		if got := w.run(w.sources("own")...); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
		w.push("own", fmt.Sprintf(declaration, size))
		ran := w.run(w.sources("own")...)
		if ran.code != want {
			t.Fatalf("%s: %+v", size, ran)
		}
		for _, command := range []string{"status", "explain"} {
			got := w.command(command, "own/one")
			blocked := strings.HasPrefix(got.out, "own/one  Block  InvalidSpec\n    the newest spec was not applied, as of the last pass: ") && strings.Contains(got.out, "storage.size")
			if got.code != exitOK || blocked != (want != exitOK) {
				t.Errorf("%s with size %s: %+v, although the pass reported\n%s", command, size, got, ran.out)
			}
		}
	}
}

// TestStatusFlags checks that errors in the command line are reported before anything is read.
func TestStatusFlags(t *testing.T) {
	w := &tenants{T: t, kubeconfig: "/nowhere"}
	for args, want := range map[string]string{
		"-o xml":                  `--output "xml": expected one of`,
		"--sort-by luck":          `--sort-by "luck": expected one of`,
		"--verdict Maybe":         `--verdict "Maybe": expected one of`,
		"-l =":                    `--selector "="`,
		"a/b --verdict Done":      "a/b names one cluster",
		"a/b -l x=y":              "a/b names one cluster",
		"a/b --namespace a":       "a/b includes its namespace",
		"a/b/c":                   "is not a cluster name",
		"a/b a/c":                 "accepts at most 1 arg",
		"a -n b --namespace c":    "because --namespace is set to several namespaces",
		"-w -o wide":              "--watch shows the table; remove --output wide",
		"-w --interval 1s":        "--interval 1s: must be at least 2s",
		"--verdict= --sort-by=no": "expected one of",
	} {
		if got := w.command(append([]string{"status"}, strings.Fields(args)...)...); got.code != exitInvalid || !strings.Contains(got.err, want) {
			t.Errorf("status %s: %+v", args, got)
		}
	}
}
