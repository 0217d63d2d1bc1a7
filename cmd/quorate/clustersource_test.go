package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/internal/config"
)

// obeyed contains valid values for the flags that have an effect if the custom resources themselves are the
// declarations. All other flags must be rejected.
var obeyed = map[string]string{
	"as": "system:serviceaccount:a:b", "as-group": "system:authenticated", "context": "x", "namespace": "a", "allow-exec": "true",
	"etcd-access": "direct", "etcd-timeout": "1s", "lease-duration": "20s", "cluster-timeout": "1s", "timeout": "1s", "until-converged": "false",
	"max-deletions": "7", "shard": "0/2", "detailed-exitcode": "true", "fail-on": "deletes-data", "loop": "false", "output": "json", "log-level": "error", "log-format": "json",
	"allow-image-repository": "registry.example.com/etcd", "allow-priority-class": "tenant-*", "allow-annotation": "a=b", "allow-label": "a", "allow-toleration": "a=b:NoSchedule",
	"allow-node-selector": "a", "allow-network-peer": "10.0.0.0/8", "allow-service-account": "backup-*", "allow-kms-key": "alias/a", "allow-lock-for": "720h", "allow-backups-per-day": "24",
	"allow-backup-destination": "s3://backups", "allow-adoption": "old:2379", "backup-image": "registry.example.com/quorate:v1", "allow-recovery": "true", "approve": "never-restart",
	"metrics-file": "/nowhere/quorate.prom", "pushgateway": "http://127.0.0.1:1", "pushgateway-job": "fleet", "heartbeat": "http://127.0.0.1:1/x",
	"notify": "http://127.0.0.1:1/x", "report-status-context": "quorate",
}

// refusable contains valid values for the settings of a source.
var refusable = map[string]string{
	"branch": "main", "tag": "v1", "semver": ">=1", "ref": "refs/heads/x", "commit": strings.Repeat("a", 40), "git-credentials": "/nowhere", "git-proxy": "http://proxy:1",
	"default-namespace": "a", "verify-keys": "/nowhere", "verify": "commit", "path": "apps", "allow-namespace": "a", "ignore-other-kinds": "true", "cache-dir": "/nowhere",
	"against": "main", "allow-non-fast-forward": "true", "ca-only": "true", "fetch-timeout": "1s", "max-render-cpu": "1s", "confirm-removals": "directory", "sources-at-once": "3",
	"report-status": "github",
}

// TestClusterSourceRejectsGitFlags checks that flags for reading git are rejected if git is not read, instead of being
// silently ignored.
func TestClusterSourceRejectsGitFlags(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]func(streams) *cobra.Command{"run": newRun, "plan": newPlan} {
		command(streams{}).Flags().VisitAll(func(f *pflag.Flag) {
			value, takes := obeyed[f.Name]
			if f.Name == "source" || f.Name == "kubeconfig" || f.Name == "config" { // always set, or the name of a file
				return
			}
			if f.Name == "fleet" || f.Name == "listen" || f.Name == "resync" || strings.HasSuffix(f.Name, "-interval") { // --fleet needs a file, and the others belong to --loop, which does not end
				return
			}
			switch f.Name { // without effect unless --notify or --report-status is set
			case "notify-format", "notify-secret-file", "report-status-repository", "report-status-token-file":
				return
			}
			if !takes {
				value = refusable[f.Name]
				if strings.HasPrefix(f.Name, "max-") && value == "" {
					value = "7"
				}
			}
			args := []string{name, "--kubeconfig", kubeconfig, "--as", "x", "--source", "cluster", "--" + f.Name + "=" + value}
			var out, stderr bytes.Buffer
			code := execute(t.Context(), args, streams{out: &out, err: &stderr})
			refused := code == exitInvalid && strings.Contains(stderr.String(), "--source cluster: ") && strings.Contains(stderr.String(), "--"+f.Name)
			if takes == refused || takes && code != exitError {
				t.Errorf("%s --%s=%s: %d %s%s", name, f.Name, value, code, out.String(), stderr.String())
			}
		})
		for _, s := range config.SourceSettings { // settings that are not flags
			full, value := config.NameOf(s.Flag), refusable[s.Flag]
			_, takes := obeyed[s.Flag]
			if takes || command(streams{}).Flags().Lookup(s.Flag) != nil {
				continue
			}
			if value == "" {
				value = "7"
			}
			var out, stderr bytes.Buffer
			code := execute(t.Context(), withSettings(t, name, "--kubeconfig", kubeconfig, "--as", "x", "--source", "cluster", full+"="+value), streams{out: &out, err: &stderr})
			if code != exitInvalid || !strings.Contains(stderr.String(), "--source cluster: ") || !strings.Contains(stderr.String(), full) {
				t.Errorf("%s %s=%s: %d %s%s", name, full, value, code, out.String(), stderr.String())
			}
		}
		for _, setting := range []string{"allow-namespace=a", "path=x", "allow-label=a"} {
			var out, stderr bytes.Buffer
			code := execute(t.Context(), []string{name, "--kubeconfig", kubeconfig, "--source", "cluster," + setting}, streams{out: &out, err: &stderr})
			if code != exitInvalid || !strings.Contains(stderr.String(), "--source cluster: ") || !strings.Contains(stderr.String(), "./cluster") {
				t.Errorf("%s cluster,%s: %d %s%s", name, setting, code, out.String(), stderr.String())
			}
		}
	}
}
