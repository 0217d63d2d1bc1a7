package objects

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// storeEnv returns the environment of a step: the credentials, each key by name, so that a Secret cannot set anything
// else, and the name of the Job for the backup step.
func storeEnv(to v1alpha1.BackupDestination, step string) []*applycorev1.EnvVarApplyConfiguration {
	var list []*applycorev1.EnvVarApplyConfiguration
	switch step { // the root file system is read-only
	case BackupContainer, VerifyContainer:
		list = append(list, applycorev1.EnvVar().WithName("TMPDIR").WithValue(spoolMount))
	case RestoreContainer:
		list = append(list, applycorev1.EnvVar().WithName("TMPDIR").WithValue(dataMount))
	}
	if step == BackupContainer {
		list = append(list, applycorev1.EnvVar().WithName("JOB_NAME").WithValueFrom(applycorev1.EnvVarSource().
			WithFieldRef(applycorev1.ObjectFieldSelector().WithAPIVersion("v1").
				WithFieldPath("metadata.labels['job-name']"))))
	}
	list = append(list, withoutNode(to)...)
	var keys []string
	switch {
	case to.S3 != nil:
		keys = []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	case to.Azure != nil:
		list = append(list, applycorev1.EnvVar().WithName("AZURE_STORAGE_ACCOUNT").WithValue(to.Azure.Account))
		keys = []string{"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"}
	case to.GCS != nil && to.SecretName != "":
		list = append(list, applycorev1.EnvVar().WithName("GOOGLE_APPLICATION_CREDENTIALS").
			WithValue(credentialsMount+"/"+googleCredentials))
	}
	for i, key := range keys {
		// If keys that S3 requires are missing, the pod waits and reports it.
		needed := to.S3 != nil && i < 2
		if to.SecretName != "" {
			list = append(list, applycorev1.EnvVar().WithName(key).WithValueFrom(applycorev1.EnvVarSource().
				WithSecretKeyRef(applycorev1.SecretKeySelector().WithName(to.SecretName).WithKey(key).
					WithOptional(!needed))))
		}
	}
	return list
}

// withoutNode prevents libraries from using the node's credentials if others are declared: with an account unknown to
// the store, or a Secret without the keys, they would otherwise act as the node. Google Cloud Storage has no such
// setting, because the metadata server also returns an account's credentials.
func withoutNode(to v1alpha1.BackupDestination) []*applycorev1.EnvVarApplyConfiguration {
	if to.SecretName == "" && to.ServiceAccountName == "" {
		return nil
	}
	switch {
	case to.S3 != nil:
		return []*applycorev1.EnvVarApplyConfiguration{
			applycorev1.EnvVar().WithName("AWS_EC2_METADATA_DISABLED").WithValue("true")}
	case to.Azure != nil:
		return []*applycorev1.EnvVarApplyConfiguration{
			applycorev1.EnvVar().WithName("AZURE_TOKEN_CREDENTIALS").WithValue("WorkloadIdentityCredential")}
	}
	return nil
}
