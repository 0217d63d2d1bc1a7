package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/internal/config"
)

var declared = regexp.MustCompile("(?s)```yaml\n(apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\n.*?)```")

// TestDocumentedDeclarationsAreValid checks that all complete declarations in the docs are valid.
func TestDocumentedDeclarationsAreValid(t *testing.T) {
	all := 0
	for _, page := range pages(t) {
		for _, match := range declared.FindAllStringSubmatch(read(t, page), -1) {
			all++
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(match[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			validate := exec.Command(testProgram(t), "validate", "--source", dir)
			validate.Env = append(os.Environ(), runsMain+"=1")
			if said, err := validate.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, match[1], said)
			}
		}
	}
	if all < 3 {
		t.Errorf("%d declarations", all)
	}
}

var overlay = regexp.MustCompile("(?s)```yaml\n(# kustomization.yaml\n.*?)```")

// remoteBase matches the URL of a directory in deploy at a release.
var remoteBase = regexp.MustCompile(`https://git\.example\.com/quorate\.git//deploy(/[a-z/-]+)\?ref=v[0-9.]+`)

// TestDocumentedBasesArePinned checks that manifests that are applied with an administrator's rights are pinned to a
// release, not a branch.
func TestDocumentedBasesArePinned(t *testing.T) {
	for _, page := range pages(t) {
		text := read(t, page)
		if all, pinned := strings.Count(text, "quorate.git//"), len(remoteBase.FindAllString(text, -1)); all != pinned {
			t.Errorf("%s: %d of %d remote bases have a ref", page, pinned, all)
		}
	}
}

var (
	shell = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// secretFile matches a redirection into a file that contains credentials.
	secretFile = regexp.MustCompile(`>+ *"?\S*(kubeconfig|\.key|-ca\.yaml|\$f)\b`)
)

// TestDocumentedSecretFilesAreOnlyReadableByOwner checks that commands in the docs restrict access to each file with
// credentials to its owner.
func TestDocumentedSecretFilesAreOnlyReadableByOwner(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for _, block := range shell.FindAllStringSubmatch(read(t, page), -1) {
			at := secretFile.FindStringIndex(block[1])
			if at == nil {
				continue
			}
			if found++; !strings.Contains(block[1][:at[0]], "umask 077\n") && !strings.Contains(block[1][:at[0]], "umask 077 ") {
				t.Errorf("%s: others can read what this writes:\n%s", page, block[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d were found", found)
	}
}

// overlays returns the kustomizations in the docs, rendered with the local deploy directory and the configuration file
// on the same page.
func overlays(t *testing.T) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, page := range pages(t) {
		text := read(t, page)
		var settings []string
		if file := configFile.FindStringSubmatch(text); file != nil {
			settings = append(settings, file[1])
		}
		for _, match := range overlay.FindAllStringSubmatch(text, -1) {
			list = append(list, rendered(t, remoteBase.ReplaceAllString(match[1], "%s$1"), settings...))
		}
	}
	return list
}

// TestDocumentedOverlaysAreValid checks that overlays in the docs can be rendered, and that this binary accepts their
// command lines.
func TestDocumentedOverlaysAreValid(t *testing.T) {
	all, runs, loops := overlays(t), 0, 0
	for _, objects := range all {
		if objects["CronJob quorate"] != nil {
			requireUnderstood(t, container(t, objects).Args)
			if image := container(t, objects).Image; !strings.HasPrefix(image, "registry.example.com/quorate:") {
				t.Errorf("its image is %s", image)
			}
			runs++
		}
		if loop, is := objects["Deployment quorate"].(*appsv1.Deployment); is {
			c := loop.Spec.Template.Spec.Containers[0]
			if requireLoopUnderstood(t, c); !strings.HasPrefix(c.Image, "registry.example.com/quorate:") {
				t.Errorf("the image of the loop is %s", c.Image)
			}
			loops++
		}
	}
	if len(all) < 5 || runs < 3 || loops < 1 {
		t.Errorf("%d overlays, %d of them with a CronJob, %d with a loop", len(all), runs, loops)
	}
}

// TestPagesThatSuspendCronJobMentionLoop checks that pages that tell the reader to suspend the CronJob in order to
// prevent passes also mention the loop, which would otherwise continue to run passes.
func TestPagesThatSuspendCronJobMentionLoop(t *testing.T) {
	all := 0
	for _, page := range pages(t) {
		if text := read(t, page); strings.Contains(text, `"suspend":true`) {
			if all++; !strings.Contains(text, "[loop](loop.md)") && !strings.Contains(text, "scale deployment quorate --replicas=0") {
				t.Errorf("%s does not explain how a loop is stopped", page)
			}
		}
	}
	if all < 2 {
		t.Errorf("%d pages suspend the CronJob", all)
	}
}

// TestDocumentedGitCredentialsAreMountedFromSecrets checks sources in the docs that have their own credentials: the
// credentials of each source must be mounted from a separate, readable Secret, and the docs must explain how to create
// it.
func TestDocumentedGitCredentialsAreMountedFromSecrets(t *testing.T) {
	page := read(t, "docs/how-to/private-repository.md")
	var secrets []string
	for _, objects := range overlays(t) {
		for _, s := range sourcesIn(t, objects) {
			at := slices.IndexFunc(s.Values, func(v config.Value) bool { return v.Flag == "git-credentials" })
			if at < 0 {
				continue
			}
			directory := s.Values[at].Items[0].Text
			secret := secretsMounted(t, objects)[directory]
			if secret == "" || slices.Contains(secrets, secret) || !strings.Contains(page, "create secret generic "+secret+" ") {
				t.Errorf("%s has its credentials in %q, of the Secret %q", s.Location.Items[0].Text, directory, secret)
			}
			secrets = append(secrets, secret)
		}
	}
	if len(secrets) != 2 {
		t.Errorf("the docs show sources with the Secrets %q, want two of them", secrets)
	}
}

// sourcesIn returns the sources in the configuration file of an overlay with a CronJob.
func sourcesIn(t *testing.T, objects map[string]any) (list []config.Source) {
	t.Helper()
	if objects["CronJob quorate"] == nil {
		return nil
	}
	for name, o := range objects {
		file, is := o.(*corev1.ConfigMap)
		if !is || !strings.HasPrefix(name, "ConfigMap quorate-config") {
			continue
		}
		content, problems := config.Parse([]byte(file.Data["quorate.yaml"]), os.LookupEnv, func(string) bool { return true })
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		list = append(list, content.Sources...)
	}
	return list
}

// secretsMounted returns the Secrets by mount path, and requires that only the container's user may read them.
func secretsMounted(t *testing.T, objects map[string]any) map[string]string {
	t.Helper()
	pod := objects["CronJob quorate"].(*batchv1.CronJob).Spec.JobTemplate.Spec.Template.Spec
	mounted := map[string]string{}
	for _, volume := range pod.Volumes {
		for _, mount := range pod.Containers[0].VolumeMounts {
			if volume.Secret == nil || mount.Name != volume.Name {
				continue
			}
			mounted[mount.MountPath] = volume.Secret.SecretName
			if mode := volume.Secret.DefaultMode; mode == nil || *mode != 0o440 || pod.SecurityContext.FSGroup == nil || *pod.SecurityContext.FSGroup != *pod.SecurityContext.RunAsGroup || !mount.ReadOnly {
				t.Errorf("the user of the container cannot read %s, or others can too", volume.Secret.SecretName)
			}
		}
	}
	return mounted
}
