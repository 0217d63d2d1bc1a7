package main

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestBackupDestinationAndImageMustBeAllowed checks that the administrator determines where backups may be stored and
// which image takes them. This applies to declarations in git, to clusters that were applied while the settings were
// still allowed, and to custom resources that are themselves the declarations.
func TestBackupDestinationAndImageMustBeAllowed(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "a")
	w.push("a", "{apiVersion: etcd.quorate.dev/v1alpha1, kind: EtcdCluster, metadata: {name: one, namespace: a},\n"+
		" spec: {version: 3.6.16, lifecycle: Stopped, suspend: true,\n  backup: {schedule: H H * * *, to: {volume: {claimName: backups}}}}}\n", "a/two")
	w.made("a/one", "a/two")
	const (
		refused = `spec.backup.to: "volume://backups" is not allowed; policy.backupDestinations allows none (--allow-backup-destination sets it)`
		noImage = "spec.backup: this run does not set --backup-image"
		allowed = "--allow-backup-destination=volume://backups"
		image   = "--backup-image=registry.example.com/quorate:v1"
	)
	source := w.repository("a")
	for _, command := range []string{"plan", "run"} {
		for _, args := range [][]string{{"--source", source}, {"--source", source, image}, {"--source", source + ",allow-backup-destination=", allowed, image}} {
			if got := w.says(command, args...); got.code != exitInvalid || !strings.Contains(got.out, "0.yaml:3: "+refused) {
				t.Errorf("%s %q: %d %s%s", command, args, got.code, got.out, got.err)
			}
		}
		if got := w.says(command, "--source", source, allowed); got.code != exitInvalid || !strings.Contains(got.out, noImage) || strings.Contains(got.out, refused) {
			t.Errorf("%s without an image: %d %s%s", command, got.code, got.out, got.err)
		}
	}
	if got := w.says("validate", "--source", source); got.code != exitOK {
		t.Errorf("validate: %d %s%s", got.code, got.out, got.err)
	}
	stalled := func(when, want string, args ...string) {
		t.Helper()
		got := w.says("run", args...)
		condition := w.condition("a/one", v1alpha1.ConditionStalled)
		if (want == "") != strings.Contains(condition, "Stalled=False") || !strings.Contains(condition, want) || (got.code == exitOK) != (want == "") {
			t.Errorf("%s: %d %s\n%s%s", when, got.code, condition, got.out, got.err)
		}
		if condition := w.condition("a/two", v1alpha1.ConditionStalled); !strings.Contains(condition, "Stalled=False") {
			t.Errorf("%s: a/two: %s", when, condition)
		}
	}
	stalled("allowed", "", "--source", source, allowed, image)
	if w.cluster("a/one").Spec.Backup == nil {
		t.Error("an allowed declaration is not applied")
	}
	stalled("allowed no longer", refused, "--source", source, image)
	stalled("without an image", noImage, "--source", source, allowed)
	stalled("declares itself", refused, "--source", "cluster", image)
	stalled("declares itself, without an image", noImage, "--source", "cluster", allowed)
	stalled("declares itself, and is allowed", "", "--source", "cluster", allowed, image)
	for _, output := range []string{"text", "wide", "json"} {
		if got := w.says("status", "-o", output); !strings.Contains(got.out, "Done") || strings.Contains(got.out, "--") {
			t.Errorf("status misses a setting that it does not have: %s", got.out)
		}
	}
}

func TestImageFlag(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for _, value := range []string{"quorate:v1", "registry.example.com:5000/team/quorate:v1.2_3-x", "quorate" + digest, "ghcr.io/a/b:v1" + digest, "localhost/q:1", "a__b/c--d:1"} {
		var i image
		if err := i.Set(value); err != nil || i.String() != value {
			t.Errorf("%s: %v", value, err)
		}
	}
	for _, value := range []string{
		"", "quorate", "registry.example.com:5000/quorate", "quorate:", "quorate@sha256:0a", "quorate@md5:" + strings.Repeat("0a", 16), "Quorate/Quorate:v1", "a//b:v1", "a/b:v1 ",
		"a b:v1", "https://a/b:v1", ":v1", digest, "a:" + strings.Repeat("v", 129), strings.Repeat("a/", 250) + "b:v1", "a/b:v1\n", "a/b:v1@" + digest, "-a:1",
	} {
		var i image
		if err := i.Set(value); err == nil || i != "" {
			t.Errorf("%q is accepted", value)
		}
	}
}
