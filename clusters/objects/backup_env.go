package objects

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// storeEnv returns the environment variables of a step: the credentials and, for the backup step, the name of the Job.
// Each credentials key is listed explicitly, so that a Secret cannot set other variables.
func storeEnv(to v1alpha1.BackupDestination, step string) []*applycorev1.EnvVarApplyConfiguration {
	var list []*applycorev1.EnvVarApplyConfiguration
	switch step { // needed because the root file system is read-only
	case BackupContainer, VerifyContainer, CopyContainer:
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
		// If keys that S3 requires are missing, the pod does not start, and its status names them.
		needed := to.S3 != nil && i < 2
		if to.SecretName != "" {
			list = append(list, applycorev1.EnvVar().WithName(key).WithValueFrom(applycorev1.EnvVarSource().
				WithSecretKeyRef(applycorev1.SecretKeySelector().WithName(to.SecretName).WithKey(key).
					WithOptional(!needed))))
		}
	}
	return list
}

// withoutNode prevents the cloud libraries from using the node's credentials if credentials are declared. The libraries
// would otherwise do so if the store does not know the account or the Secret lacks the keys. Google Cloud Storage has
// no such setting, because the metadata server also provides the credentials of ServiceAccounts.
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
