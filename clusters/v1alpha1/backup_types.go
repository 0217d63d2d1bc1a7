package v1alpha1

import "strings"

// BackupSpec specifies when and where a cluster is backed up, and how long backups are kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || !has(self.verify) || self.verify != 'Never'",message="backup.retention requires backup.verify: Every, because a backup must be read back before older backups are deleted",fieldPath=".retention"
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || !has(self.recipients) || self.recipients.size() == 0 || has(self.identitySecretName)",message="backup.retention requires backup.identitySecretName if backups are encrypted; otherwise delete backups with the store or quorate backups prune",fieldPath=".retention"
// +kubebuilder:validation:XValidation:rule="!has(self.drill) || !has(self.recipients) || self.recipients.size() == 0 || has(self.identitySecretName)",message="backup.drill requires backup.identitySecretName if backups are encrypted",fieldPath=".drill"
// +kubebuilder:validation:XValidation:rule="!has(self.identitySecretName) || has(self.recipients) && self.recipients.size() > 0",message="backup.identitySecretName is for encrypted backups; set backup.recipients as well",fieldPath=".identitySecretName"
type BackupSpec struct {
	// schedule is the cron schedule: minute, hour, day of the month, month and day of the week, such as "0 * * * *". It
	// can also be @hourly, @daily, @weekly, @monthly or @yearly. H as the minute or hour is replaced by a number
	// derived from the cluster's namespace and name, so that clusters start at different times: "H * * * *" means once
	// an hour, and "H H * * *" once a day. If several backups could not start on time, only the newest of them is taken
	// later.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
	// timeZone is the IANA time zone of the schedule, such as Europe/Berlin. Defaults to Etc/UTC.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone must be an IANA time zone, such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
	// suspend stops scheduled backups and drills from starting.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// to is the store for the backups. The administrator configures which stores are allowed. By default, no stores are
	// allowed.
	// +required
	// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure), has(self.volume)].filter(given, given).size() == 1",message="set exactly one store: s3, gcs, azure or volume"
	To BackupDestination `json:"to"`
	// recipients lists the age public keys (age1…) for which backups are encrypted. Only holders of a matching identity
	// can read the backups. If unset, Quorate does not encrypt backups.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Recipients []BackupRecipient `json:"recipients,omitempty"`
	// identitySecretName is the name of a Secret in the cluster's namespace. Its key identity.txt contains the age
	// identity of one of the recipients. Quorate uses it to verify encrypted backups and to restore them in drills.
	// Anyone who can read the Secret can read the backups.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
	// verify specifies which backups are read back from the store and checked right after they are stored: Every or
	// Never. Defaults to Every. Encrypted backups are verified only if identitySecretName is set.
	// +optional
	// +kubebuilder:default=Every
	Verify BackupVerification `json:"verify,omitempty"`
	// retention specifies which backups are kept. The others are deleted after each verified backup. If unset, no
	// backups are deleted.
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`
	// drill specifies when the newest backup is restored as a test. It is restored into a temporary etcd of the
	// declared version, and its data is checked. status.backup.drill reports how long the restore took.
	// +optional
	Drill *BackupDrill `json:"drill,omitempty"`
	// before lists the operations that wait for a backup. With Upgrade, pods are rolled to a different etcd version
	// only after a backup has been taken since that version was declared. With Deletion, a cluster that is declared
	// Deleted is stopped only after a backup has been taken since then.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Before []BackupOccasion `json:"before,omitempty"`
	// deadline is the maximum duration of a backup, including verification and retries. Defaults to 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}

// BackupDrill specifies when backups are restored as a test.
type BackupDrill struct {
	// schedule is the cron schedule of the drills, in the format and time zone of the backup schedule.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
}

// BackupVerification specifies which backups are verified.
//
// +kubebuilder:validation:Enum=Every;Never
type BackupVerification string

// The verification modes.
const (
	VerifyEvery BackupVerification = "Every"
	VerifyNever BackupVerification = "Never"
)

// BackupOccasion is an operation that waits for a backup.
//
// +kubebuilder:validation:Enum=Upgrade;Deletion
type BackupOccasion string

// The operations that can wait for a backup: rolling pods to a different etcd version, or deleting the cluster.
const (
	BeforeUpgrade  BackupOccasion = "Upgrade"
	BeforeDeletion BackupOccasion = "Deletion"
)

// BackupRecipient is an age public key.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=2048
// +kubebuilder:validation:XValidation:rule="self.matches('^age1[0-9a-z]+$')",message="a recipient must be an age public key (age1…)"
type BackupRecipient string

// BackupRetention specifies which backups are kept. A backup is kept if at least one setting keeps it. The newest
// backup and the newest verified backup are always kept. Nothing is deleted unless the newest backup has been verified.
//
// +kubebuilder:validation:XValidation:rule="has(self.last) || has(self.hourly) || has(self.daily) || has(self.weekly)",message="backup.retention must keep something; set last, hourly, daily or weekly"
type BackupRetention struct {
	// last is the number of newest backups to keep.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Last int32 `json:"last,omitempty"`
	// hourly is the number of hours for which the newest backup of the hour is kept. Hours without a backup do not
	// count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Hourly int32 `json:"hourly,omitempty"`
	// daily is the number of days, in UTC, for which the newest backup of the day is kept. Days without a backup do not
	// count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Daily int32 `json:"daily,omitempty"`
	// weekly is the number of weeks, from Monday in UTC, for which the newest backup of the week is kept. Weeks without
	// a backup do not count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Weekly int32 `json:"weekly,omitempty"`
	// minAge is the age before which a backup is never deleted. Defaults to 24h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="minAge must be a duration of at most 87600h, such as 24h"
	MinAge Duration `json:"minAge,omitempty"`
}

// BackupDestination is a backup store and the credentials for it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volume) || !has(self.secretName) && !has(self.serviceAccountName)",message="a volume does not use credentials; omit secretName and serviceAccountName"
type BackupDestination struct {
	// s3 is an S3 bucket of AWS or of a compatible store.
	// +optional
	S3 *S3Destination `json:"s3,omitempty"`
	// gcs is a Google Cloud Storage bucket.
	// +optional
	GCS *GCSDestination `json:"gcs,omitempty"`
	// azure is an Azure Blob Storage container.
	// +optional
	Azure *AzureDestination `json:"azure,omitempty"`
	// volume is a volume in the cluster's namespace, preferably not on the members' nodes.
	// +optional
	Volume *VolumeDestination `json:"volume,omitempty"`
	// secretName is the name of a Secret in the cluster's namespace with credentials for the store. Its keys have the
	// names of environment variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or
	// AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN. For Google, the key credentials.json contains the file that
	// GOOGLE_APPLICATION_CREDENTIALS would point to.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must be the name of a Secret"
	SecretName string `json:"secretName,omitempty"`
	// serviceAccountName is the name of a ServiceAccount in the cluster's namespace that the store recognizes through
	// workload identity. Its token is mounted into the backup pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serviceAccountName must be the name of a ServiceAccount"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BackupPrefix is the prefix of backup names in a bucket, such as etcd or team/etcd.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$')",message="a prefix must consist of names made of letters, digits, '.', '_' and '-', separated by '/', such as team/etcd"
type BackupPrefix string

// EndpointURL is the URL of a store.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[-A-Za-z0-9._/]*)?$')",message="an endpoint must be a URL such as https://s3.example.com, without credentials or a query"
type EndpointURL string

// S3Destination is a bucket that is accessed with the S3 API.
type S3Destination struct {
	// bucket is the name of the bucket.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$')",message="a bucket name must consist of 3 to 63 lowercase letters, digits, '.' and '-'"
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket"`
	// prefix is the prefix of all names in the bucket.
	// +optional
	Prefix BackupPrefix `json:"prefix,omitempty"`
	// region is the region of the bucket. Defaults to the region in the pod's environment.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a region must be a name such as eu-central-1"
	Region string `json:"region,omitempty"`
	// endpoint is the URL of a store other than AWS.
	// +optional
	Endpoint EndpointURL `json:"endpoint,omitempty"`
	// pathStyle puts the bucket name into the path of URLs, as many stores other than AWS require.
	// +optional
	PathStyle bool `json:"pathStyle,omitempty"`
	// caSecretName is the name of a Secret in the cluster's namespace. Its key ca.crt contains the CA that signs the
	// endpoint's certificate.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="caSecretName must be the name of a Secret"
	CASecretName string `json:"caSecretName,omitempty"`
	// kmsKey is the ID, ARN or alias of the AWS KMS key that encrypts all stored objects. If unset, the bucket's
	// setting applies. Restoring a backup requires access to the key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9:/_-]+$')",message="kmsKey must be the ID, ARN or alias of a key, such as alias/backups"
	KMSKey string `json:"kmsKey,omitempty"`
	// lockFor is how long S3 Object Lock (mode COMPLIANCE) prevents the deletion of a backup, regardless of access
	// rights. Object Lock must be enabled on the bucket. Retention does not delete backups while they are locked.
	// lockFor has no effect on a store that is only read.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1h') && duration(self) <= duration('8760h')",message="lockFor must be a duration between 1h and 8760h, such as 720h"
	LockFor Duration `json:"lockFor,omitempty"`
}

// GCSDestination is a Google Cloud Storage bucket.
type GCSDestination struct {
	// bucket is the name of the bucket.
	// +required
	// +kubebuilder:validation:MaxLength=222
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9._-]+[a-z0-9]$')",message="a bucket name must consist of at least 3 lowercase letters, digits, '.', '_' and '-'"
	Bucket string `json:"bucket"`
	// prefix is the prefix of all names in the bucket.
	// +optional
	Prefix BackupPrefix `json:"prefix,omitempty"`
	// endpoint is the URL of the store, such as a regional endpoint. Defaults to the public endpoint.
	// +optional
	Endpoint EndpointURL `json:"endpoint,omitempty"`
}

// AzureDestination is an Azure Blob Storage container.
type AzureDestination struct {
	// container is the name of the container.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{1,61}[a-z0-9])$')",message="a container name must consist of 3 to 63 lowercase letters, digits and '-'"
	Container string `json:"container"`
	// prefix is the prefix of all names in the container.
	// +optional
	Prefix BackupPrefix `json:"prefix,omitempty"`
	// account is the name of the storage account.
	// +required
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]{3,24}$')",message="a storage account name must consist of 3 to 24 lowercase letters and digits"
	Account string `json:"account"`
	// endpoint is the URL of the account, for example in a sovereign cloud. Defaults to
	// https://ACCOUNT.blob.core.windows.net.
	// +optional
	Endpoint EndpointURL `json:"endpoint,omitempty"`
}

// VolumeDestination is a directory on a volume.
type VolumeDestination struct {
	// claimName is the name of a PersistentVolumeClaim in the cluster's namespace. It is mounted into the pod of each
	// backup. If the backups of several clusters share it, several nodes must be able to mount it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="claimName must be the name of a PersistentVolumeClaim"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('data-')",message="claims whose names begin with data- are reserved for members"
	ClaimName string `json:"claimName"`
}

// Location returns the URL of the store, such as s3://backups/etcd or volume://CLAIM, without the endpoint.
func (d BackupDestination) Location() string {
	join := func(scheme, bucket string, prefix BackupPrefix) string {
		if prefix == "" {
			return scheme + "://" + bucket
		}
		return scheme + "://" + bucket + "/" + string(prefix)
	}
	switch {
	case d.S3 != nil:
		return join("s3", d.S3.Bucket, d.S3.Prefix)
	case d.GCS != nil:
		return join("gs", d.GCS.Bucket, d.GCS.Prefix)
	case d.Azure != nil:
		return join("azblob", d.Azure.Container, d.Azure.Prefix)
	case d.Volume != nil:
		return join("volume", d.Volume.ClaimName, "")
	}
	return ""
}

// Place returns the URL of the store, followed by @ and the endpoint or the AWS partition, except for the public
// endpoints of AWS and Google and for AWS's public partition. An Azure endpoint that does not name the account is
// followed by the account. The URL alone is not sufficient, because each Azure account, AWS partition and S3-compatible
// store may have a bucket with the same name. An AWS bucket without a region counts as being in the public partition,
// because its region is specified in the environment of the pods.
func (d BackupDestination) Place() string {
	switch {
	case d.S3 != nil && d.S3.Endpoint == "":
		if partition, _ := d.S3.Partition(); partition != "" {
			return d.Location() + "@" + partition
		}
		return d.Location()
	case d.Azure != nil && !d.Azure.endpointNamesAccount():
		return d.Location() + "@" + d.Endpoint() + " of account " + d.Azure.Account
	case d.Endpoint() != "":
		return d.Location() + "@" + d.Endpoint()
	}
	return d.Location()
}

// partitions lists the AWS partitions except the public partition, with the prefix of their region names, their name,
// and the domain of their endpoints.
var partitions = []struct{ region, name, domain string }{
	{"cn-", "aws-cn", "amazonaws.com.cn"},
	{"us-gov-", "aws-us-gov", "amazonaws.com"},
	{"us-iso-", "aws-iso", "c2s.ic.gov"},
	{"us-isob-", "aws-iso-b", "sc2s.sgov.gov"},
	{"us-isof-", "aws-iso-f", "csp.hci.ic.gov"},
	{"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"},
	{"eusc-", "aws-eusc", "amazonaws.eu"},
}

// Partition returns the name and the endpoint domain of the region's AWS partition, or empty strings for the public
// partition. Bucket names are unique only within a partition.
func (d S3Destination) Partition() (name, domain string) {
	for _, p := range partitions { // a region may have a prefix, such as fips-us-gov-west-1
		if strings.HasPrefix(d.Region, p.region) || strings.Contains(d.Region, "-"+p.region) {
			return p.name, p.domain
		}
	}
	return "", ""
}

// endpointNamesAccount reports whether the endpoint serves only this account, because its host begins with the account
// name or, for an emulator, its path does.
func (d AzureDestination) endpointNamesAccount() bool {
	_, at, _ := strings.Cut(string(d.Endpoint), "://")
	host, path, _ := strings.Cut(at, "/")
	first, _, _ := strings.Cut(path, "/")
	return d.Endpoint == "" || first == d.Account || strings.HasPrefix(host, d.Account+".")
}

// Endpoint returns the URL of the store's endpoint. It is empty for the public endpoint of AWS or Google, and for a
// volume.
func (d BackupDestination) Endpoint() string {
	switch {
	case d.S3 != nil:
		return string(d.S3.Endpoint)
	case d.GCS != nil:
		return string(d.GCS.Endpoint)
	case d.Azure != nil && d.Azure.Endpoint == "":
		return "https://" + d.Azure.Account + ".blob.core.windows.net"
	case d.Azure != nil:
		return string(d.Azure.Endpoint)
	}
	return ""
}
