package schema

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Warnings returns warnings about a valid spec whose defaults have been set. If the spec does not set a quota, the
// quota is at most half of the volume size.
func Warnings(spec v1alpha1.EtcdClusterSpec) []string {
	var warnings []string
	if n := spec.Replicas; n != nil && *n%2 == 0 {
		warnings = append(warnings, fmt.Sprintf(
			"spec.replicas is %d: "+
				"an even number of voters tolerates no more failures than %d and needs a larger quorum", *n, *n-1))
	}
	if n := spec.Replicas; n != nil && *n > 7 {
		warnings = append(warnings, fmt.Sprintf(
			"spec.replicas is %d: every write waits for %d members; more than seven voters are seldom "+
				"useful", *n, *n/2+1))
	}
	quota, size := spec.Etcd.Quota, spec.Storage.Size
	if 2*quota.Value() > size.Value() {
		warnings = append(warnings, fmt.Sprintf(
			"spec.etcd.quota is %s, over half of spec.storage.size (%s): "+
				"defragmentation and snapshots need room for a second copy", quota.String(), size.String()))
	}
	if spec.TLS.Mode == v1alpha1.TLSDisabled {
		warnings = append(warnings, "spec.tls.mode is Disabled: anyone with access to the pods can read and write "+
			"everything")
		if _, set := spec.Etcd.Options["tls-min-version"]; set {
			warnings = append(warnings,
				"spec.etcd.options: tls-min-version has no effect while spec.tls.mode is Disabled")
		}
	}
	if _, limited := spec.Pod.Resources.Limits["cpu"]; limited {
		warnings = append(warnings,
			"spec.pod.resources.limits.cpu is set: a throttled member misses heartbeats and loses leadership")
	}
	if b := spec.Backup; b != nil {
		warnings = append(warnings, warningsOfStore("spec.backup.to", b.To)...)
	}
	if r := spec.Restore; r != nil {
		warnings = append(warnings, warningsOfStore("spec.restore.from", r.From.BackupDestination)...)
		if from := r.From.Etcd; from != nil && !from.Secure() {
			warnings = append(warnings, fmt.Sprintf("spec.restore.from.etcd: the connections to %s are not encrypted: "+
				"anyone on the network path can read and change the data, and read the password", from.Endpoints[0]))
		}
	}
	if r := spec.Recovery; r != nil && r.Backup != nil {
		warnings = append(warnings, warningsOfStore("spec.recovery.backup.from", r.Backup.From)...)
	}
	return warnings
}

func warningsOfStore(path string, store v1alpha1.BackupDestination) []string {
	if !strings.HasPrefix(store.Endpoint(), "http://") {
		return nil
	}
	return []string{fmt.Sprintf("%s: the connection to %s is not encrypted: anyone on the network path can read "+
		"and change the traffic", path, store.Endpoint())}
}
