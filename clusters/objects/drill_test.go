package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/reconcile/decide"
)

// drillTemplate returns the template of the drill pods of a cluster with the given destination.
func drillTemplate(t *testing.T, to string) corev1.PodTemplateSpec {
	t.Helper()
	c := cluster(t, fmt.Sprintf(`
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: a, namespace: prod}
spec:
  version: 3.6.16
  image: {repository: registry.example.com/somebody/etcd}
  backup:
    schedule: "@daily"
    to: %s
    recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]
    identitySecretName: age
    drill: {schedule: "@weekly"}
`, to))
	cronJob := drillCronJob(Input{
		Cluster: c, Record: record(3, decide.Sealed), Voters: 3, Certificates: certificates(t, c),
		BackupImage: "registry.example.com/quorate:v1",
	})
	text, err := json.Marshal(cronJob.Spec.JobTemplate.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodTemplateSpec
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestDrillHidesCredentialsFromEtcd checks that the etcd container, whose image git selects, does not receive the
// store's credentials: neither the ServiceAccount token nor any part of a Secret.
func TestDrillHidesCredentialsFromEtcd(t *testing.T) {
	for _, to := range []string{
		"{s3: {bucket: backups}, serviceAccountName: store}", "{azure: {account: acme, container: backups}, serviceAccountName: store}",
		"{gcs: {bucket: backups}, serviceAccountName: store}", "{s3: {bucket: backups, caSecretName: ca}, secretName: keys}",
		"{gcs: {bucket: backups}, secretName: keys}", "{azure: {account: acme, container: backups}, secretName: keys}", "{volume: {claimName: v}}",
	} {
		pod := drillTemplate(t, to)
		if given := pod.Spec.AutomountServiceAccountToken; given == nil || *given {
			t.Errorf("%s: Kubernetes gives each container the token", to)
		}
		i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == recoveryEtcd })
		etcd := pod.Spec.InitContainers[i]
		if len(etcd.Env) > 0 || len(etcd.EnvFrom) > 0 || len(etcd.VolumeMounts) != 1 || etcd.VolumeMounts[0].Name != volumeWork {
			t.Errorf("%s: etcd has more than the restored data: %+v", to, etcd)
		}
		work := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumeWork })
		if pod.Spec.Volumes[work].EmptyDir == nil {
			t.Errorf("%s: %+v", to, pod.Spec.Volumes[work])
		}
		named := strings.Contains(to, "serviceAccountName")
		for _, webhook := range []string{"eks.amazonaws.com/skip-containers", "azure.workload.identity/skip-containers"} {
			if skips := pod.Annotations[webhook]; named != (skips == recoveryEtcd) {
				t.Errorf("%s: %s: %q", to, webhook, skips)
			}
		}
		for _, own := range []corev1.Container{pod.Spec.InitContainers[1-i], pod.Spec.Containers[0]} {
			if has := slices.ContainsFunc(own.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenMount }); has != named {
				t.Errorf("%s: %s has the token of the ServiceAccount: %t", to, own.Name, has)
			}
		}
	}
}
