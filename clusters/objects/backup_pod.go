package objects

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Volumes and mount paths of a backup pod.
const (
	volumeSpool       = "spool"
	volumeTLS         = "tls"
	volumeStore       = "store"
	volumeCredentials = "credentials"
	volumeStoreCA     = "store-ca"
	volumeIdentity    = "identity"
	volumeToken       = "token"

	spoolMount       = "/spool"
	tlsMount         = "/tls"
	storeMount       = "/backups"
	credentialsMount = "/credentials"
	storeCAMount     = "/store-ca"
	identityMount    = "/identity"
	tokenMount       = "/var/run/secrets/kubernetes.io/serviceaccount"
	// resultFile tells the verify step which backup was taken.
	resultFile = spoolMount + "/result.json"

	// These are keys in Secrets that a declaration names.
	googleCredentials = "credentials.json"
	ageIdentity       = "identity.txt"
)

// backupSteps returns the containers of the pod in the order in which they run.
func backupSteps(in Input) []*applycorev1.ContainerApplyConfiguration {
	b := in.Cluster.Spec.Backup
	steps := []*applycorev1.ContainerApplyConfiguration{storeStep(in, b.To, BackupContainer, backupArgs(in),
		append(clientTLSMounts(in.Cluster), mountAt(volumeSpool, spoolMount))...)}
	if VerifiesBackups(b) {
		mounts := []*applycorev1.VolumeMountApplyConfiguration{mountAt(volumeSpool, spoolMount)}
		if b.IdentitySecretName != "" {
			mounts = append(mounts, mountAt(volumeIdentity, identityMount).WithReadOnly(true))
		}
		steps = append(steps, storeStep(in, b.To, VerifyContainer, verifyArgs(in), mounts...))
	}
	if b.Retention != nil && VerifiesBackups(b) {
		steps = append(steps, storeStep(in, b.To, PruneContainer, pruneArgs(in)))
	}
	return steps
}

func backupArgs(in Input) []string {
	c := in.Cluster
	args := []string{"backup", clusterKey(c), "--to=" + storeURL(c.Spec.Backup.To)}
	for _, m := range in.Record.Members {
		if m.Mode == decide.Joining {
			continue // a majority of the named members must confirm the member list, and it may never start
		}
		args = append(args, fmt.Sprintf("--member=%s=%s", PodName(c.Name, m.Ordinal), ClientURL(c, m.Ordinal)))
	}
	if len(in.Record.Guests) > 0 {
		for _, url := range in.GuestEndpoints {
			args = append(args, "--member="+url)
		}
	}
	if secure(c) {
		args = append(args, "--cacert="+tlsMount+"/"+corev1.ServiceAccountRootCAKey,
			"--cert="+tlsMount+"/"+corev1.TLSCertKey, "--key="+tlsMount+"/"+corev1.TLSPrivateKeyKey)
	}
	for _, recipient := range c.Spec.Backup.Recipients {
		args = append(args, "--recipient="+escaped(string(recipient)))
	}
	if to := c.Spec.Backup.To.S3; to != nil && to.LockFor != "" {
		args = append(args, "--s3-lock-for="+string(to.LockFor))
	}
	args = append(args, "--job=$(JOB_NAME)", "--result="+corev1.TerminationMessagePathDefault, "--result="+resultFile,
		"--spool="+spoolMount)
	return append(args, storeArgs(c.Spec.Backup.To, c.Spec.Backup.Deadline)...)
}

func verifyArgs(in Input) []string {
	c := in.Cluster
	args := []string{"backups", "verify", clusterKey(c), "--from=" + storeURL(c.Spec.Backup.To),
		"--result=" + resultFile, "--spool=" + spoolMount}
	if c.Spec.Backup.IdentitySecretName != "" {
		args = append(args, "--identity="+identityMount+"/"+ageIdentity)
	}
	return append(args, storeArgs(c.Spec.Backup.To, c.Spec.Backup.Deadline)...)
}

func pruneArgs(in Input) []string {
	c := in.Cluster
	// --by-verified is set because another Job may have stored a newer backup that has not been verified yet.
	args := []string{"backups", "prune", clusterKey(c), "--from=" + storeURL(c.Spec.Backup.To), "--by-verified"}
	r := c.Spec.Backup.Retention
	for _, part := range []struct {
		flag  string
		count int32
	}{{"last", r.Last}, {"hourly", r.Hourly}, {"daily", r.Daily}, {"weekly", r.Weekly}} {
		if part.count > 0 {
			args = append(args, "--"+part.flag+"="+strconv.Itoa(int(part.count)))
		}
	}
	return append(append(args, "--min-age="+string(r.MinAge)), storeArgs(c.Spec.Backup.To, c.Spec.Backup.Deadline)...)
}

func clusterKey(c *v1alpha1.EtcdCluster) string { return c.Namespace + "/" + c.Name }

// storeArgs returns the arguments for accessing a store, including the time limit.
func storeArgs(to v1alpha1.BackupDestination, deadline v1alpha1.Duration) []string {
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag+"="+escaped(value))
		}
	}
	switch {
	case to.S3 != nil:
		add("s3-endpoint", string(to.S3.Endpoint))
		add("s3-region", to.S3.Region)
		add("s3-kms-key", to.S3.KMSKey)
		if to.S3.PathStyle {
			args = append(args, "--s3-path-style")
		}
		if to.S3.CASecretName != "" {
			args = append(args, "--s3-ca-file="+storeCAMount+"/"+corev1.ServiceAccountRootCAKey)
		}
	case to.GCS != nil:
		add("gcs-endpoint", string(to.GCS.Endpoint))
	case to.Azure != nil:
		add("azure-endpoint", to.Endpoint())
	}
	return append(args, "--timeout="+string(deadline))
}

// escaped prevents Kubernetes from expanding variable references in an argument.
func escaped(argument string) string {
	var text []byte
	for i := range len(argument) {
		if argument[i] == '$' {
			text = append(text, '$')
		}
		text = append(text, argument[i])
	}
	return string(text)
}

// storeURL returns the URL of the store in the form that Quorate's commands accept.
func storeURL(to v1alpha1.BackupDestination) string {
	if to.Volume != nil {
		return "file://" + storeMount
	}
	return to.Location()
}

// storeStep returns a container that runs a Quorate command against a store.
func storeStep(
	in Input, to v1alpha1.BackupDestination, name string, args []string,
	mounts ...*applycorev1.VolumeMountApplyConfiguration,
) *applycorev1.ContainerApplyConfiguration {
	return applycorev1.Container().
		WithName(name).
		WithImage(in.BackupImage).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(args...).
		WithEnv(storeEnv(to, name)...).
		WithVolumeMounts(append(mounts, storeMounts(to, name)...)...).
		// Copy the error to the pod's status.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
				corev1.ResourceMemory: resource.MustParse("64Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: inspectionMemory(in.Cluster.Spec, "256Mi")})).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
}

func backupVolumes(in Input) []*applycorev1.VolumeApplyConfiguration {
	c := in.Cluster
	b := c.Spec.Backup
	list := []*applycorev1.VolumeApplyConfiguration{applycorev1.Volume().WithName(volumeSpool).
		WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(spoolLimit(c.Spec)))}
	if secure(c) {
		list = append(list, secretFiles(volumeTLS, NamesOf(c.Name).OwnSecret))
	}
	list = append(list, storeVolumes(b.To)...)
	if VerifiesBackups(b) && b.IdentitySecretName != "" {
		list = append(list, secretFiles(volumeIdentity, b.IdentitySecretName, ageIdentity))
	}
	return list
}

// storeVolumes returns the volumes that storeMounts mounts.
func storeVolumes(to v1alpha1.BackupDestination) (list []*applycorev1.VolumeApplyConfiguration) {
	if to.Volume != nil {
		list = append(list, applycorev1.Volume().WithName(volumeStore).
			WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
				WithClaimName(to.Volume.ClaimName)))
	}
	if to.GCS != nil && to.SecretName != "" {
		list = append(list, secretFiles(volumeCredentials, to.SecretName, googleCredentials))
	}
	if to.S3 != nil && to.S3.CASecretName != "" {
		list = append(list, secretFiles(volumeStoreCA, to.S3.CASecretName, corev1.ServiceAccountRootCAKey))
	}
	return list
}

// secretFiles returns a volume with the given keys of a Secret, or with all keys if none are given.
func secretFiles(volume, secret string, keys ...string) *applycorev1.VolumeApplyConfiguration {
	source := applycorev1.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(secretMode)
	for _, key := range keys {
		source.WithItems(applycorev1.KeyToPath().WithKey(key).WithPath(key))
	}
	return applycorev1.Volume().WithName(volume).WithSecret(source)
}

// tokenFiles returns a volume with the pod's ServiceAccount token, which only some containers mount. It has the same
// content as the volume that Kubernetes would otherwise mount into all containers.
func tokenFiles() *applycorev1.VolumeApplyConfiguration {
	const expirationSeconds, mode = 3607, 0o644
	return applycorev1.Volume().WithName(volumeToken).WithProjected(applycorev1.ProjectedVolumeSource().
		WithDefaultMode(mode).
		WithSources(
			applycorev1.VolumeProjection().WithServiceAccountToken(applycorev1.ServiceAccountTokenProjection().
				WithExpirationSeconds(expirationSeconds).
				WithPath(corev1.ServiceAccountTokenKey)),
			applycorev1.VolumeProjection().WithConfigMap(applycorev1.ConfigMapProjection().
				WithName("kube-root-ca.crt").
				WithItems(applycorev1.KeyToPath().
					WithKey(corev1.ServiceAccountRootCAKey).
					WithPath(corev1.ServiceAccountRootCAKey))),
			applycorev1.VolumeProjection().WithDownwardAPI(applycorev1.DownwardAPIProjection().
				WithItems(applycorev1.DownwardAPIVolumeFile().
					WithPath(corev1.ServiceAccountNamespaceKey).
					WithFieldRef(applycorev1.ObjectFieldSelector().
						WithAPIVersion("v1").
						WithFieldPath("metadata.namespace"))))))
}

// clientTLSMounts returns the volume mounts of an etcd client.
func clientTLSMounts(c *v1alpha1.EtcdCluster) []*applycorev1.VolumeMountApplyConfiguration {
	if !secure(c) {
		return nil
	}
	return []*applycorev1.VolumeMountApplyConfiguration{mountAt(volumeTLS, tlsMount).WithReadOnly(true)}
}

// storeMounts returns the volume mounts of a step that accesses the store. The restore step reads untrusted data, so it
// mounts a store on a volume read-only.
func storeMounts(to v1alpha1.BackupDestination, step string) (list []*applycorev1.VolumeMountApplyConfiguration) {
	switch {
	case to.Volume != nil && step == RestoreContainer:
		list = append(list, mountAt(volumeStore, storeMount).WithReadOnly(true))
	case to.Volume != nil:
		list = append(list, mountAt(volumeStore, storeMount))
	case to.GCS != nil && to.SecretName != "":
		list = append(list, mountAt(volumeCredentials, credentialsMount).WithReadOnly(true))
	case to.S3 != nil && to.S3.CASecretName != "":
		list = append(list, mountAt(volumeStoreCA, storeCAMount).WithReadOnly(true))
	}
	return list
}

func mountAt(name, path string) *applycorev1.VolumeMountApplyConfiguration {
	return applycorev1.VolumeMount().WithName(name).WithMountPath(path)
}
