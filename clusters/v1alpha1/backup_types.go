package v1alpha1

import "strings"

// BackupSpec says when a cluster is backed up, where to, and for how long backups are kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || !has(self.verify) || self.verify != 'Never'",message="backup.retention needs backup.verify: Every: a backup that nobody has read back is no reason to delete another",fieldPath=".retention"
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || !has(self.recipients) || self.recipients.size() == 0 || has(self.identitySecretName)",message="backup.retention of encrypted backups needs backup.identitySecretName, with which they are read back; without one, leave deleting to the store or to quorate backups prune",fieldPath=".retention"
// +kubebuilder:validation:XValidation:rule="!has(self.drill) || !has(self.recipients) || self.recipients.size() == 0 || has(self.identitySecretName)",message="backup.drill of encrypted backups needs backup.identitySecretName, with which they are read back",fieldPath=".drill"
// +kubebuilder:validation:XValidation:rule="!has(self.identitySecretName) || has(self.recipients) && self.recipients.size() > 0",message="backup.identitySecretName is for encrypted backups: name backup.recipients as well",fieldPath=".identitySecretName"
type BackupSpec struct {
	// schedule in the five fields of cron, minute, hour, day of the month, month and day of the week, such as
	// "0 * * * *"; or @hourly, @daily, @weekly or @monthly. An H for the minute or the hour is a number that
	// follows from the cluster's name, so that not all clusters begin at once: "H * * * *" is once an hour,
	// "H H * * *" once a day. A backup that could not begin in time is made up for, the newest one alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
	// timeZone of the schedule by its name in the IANA database, such as Europe/Berlin.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone is a name of the IANA database, such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
	// suspend lets no scheduled backup begin.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// to is where backups go. Which places are allowed is a setting of whoever runs Quorate; without it, none is.
	// +required
	To BackupDestination `json:"to"`
	// recipients of age, such as age1…: backups are encrypted to them, and nothing in the cluster can read them but who has
	// an identity of theirs. Without any, backups are not encrypted by Quorate.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Recipients []BackupRecipient `json:"recipients,omitempty"`
	// identitySecretName is a Secret of the cluster's namespace whose key identity.txt holds an age identity of one of the
	// recipients: encrypted backups are verified with it, and not verified without it. Whoever can read that Secret can
	// read the backups.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
	// verify says which backups are read back from the store and checked: Every one, right after it was stored, or Never.
	// Encrypted ones are verified only where identitySecretName is given.
	// +optional
	// +kubebuilder:default=Every
	Verify BackupVerification `json:"verify,omitempty"`
	// retention says which backups are kept; the others are deleted after a backup that was verified. Unset, none is
	// deleted.
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`
	// drill says when the newest backup is restored for practice: into an etcd of its own, of the declared version, that is
	// asked what it holds, and thrown away. status.backup.drill says how long that took.
	// +optional
	Drill *BackupDrill `json:"drill,omitempty"`
	// reread has stored backups downloaded again after each backup, and held against the checksum that was taken when they
	// were stored. Unset, none is. It needs no identity, and takes a quarter of deadline at most, besides.
	// +optional
	Reread *BackupReread `json:"reread,omitempty"`
	// before lists what has to wait for a backup. Upgrade: pods are not rolled to another version of etcd before there is
	// a backup that was taken since that version was declared. Deletion: a cluster that is declared Deleted is not stopped
	// before there is one that was taken since then.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Before []BackupOccasion `json:"before,omitempty"`
	// deadline is how long a backup may take with all that belongs to it, such as being verified, and with what had to be
	// tried again. Where stored ones are read again, a quarter of it is added for that.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}

// BackupDrill says when backups are restored for practice.
type BackupDrill struct {
	// schedule as that of the backups, in the same time zone. suspend lets no drill begin, either.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
}

// BackupReread says which stored backups are read again: those first that were not read for the longest time.
type BackupReread struct {
	// after is for how long a backup was not read that is read again.
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1h') && duration(self) <= duration('87600h')",message="after must be a duration between 1h and 87600h, such as 720h"
	After Duration `json:"after,omitempty"`
	// count is how many are read at most after each backup.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Count int32 `json:"count,omitempty"`
}

// BackupVerification says which backups are verified.
//
// +kubebuilder:validation:Enum=Every;Never
type BackupVerification string

// The verifications.
const (
	VerifyEvery BackupVerification = "Every"
	VerifyNever BackupVerification = "Never"
)

// BackupOccasion is something that waits for a backup.
//
// +kubebuilder:validation:Enum=Upgrade;Deletion
type BackupOccasion string

// The occasions: pods are rolled to another version of etcd, or the cluster is deleted.
const (
	BeforeUpgrade  BackupOccasion = "Upgrade"
	BeforeDeletion BackupOccasion = "Deletion"
)

// BackupRecipient is a public key of age.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=2048
// +kubebuilder:validation:XValidation:rule="self.matches('^age1[0-9a-z]+$')",message="a recipient is a public key of age (age1…)"
type BackupRecipient string

// BackupRetention is what is kept: whatever one of its parts keeps. The newest backup and the newest verified one are
// kept in any case, and nothing is deleted unless the newest one was verified.
//
// +kubebuilder:validation:XValidation:rule="has(self.last) || has(self.hourly) || has(self.daily) || has(self.weekly)",message="backup.retention must keep something: give last, hourly, daily or weekly"
type BackupRetention struct {
	// last is how many of the newest backups are kept.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Last int32 `json:"last,omitempty"`
	// hourly is for how many hours that have a backup the newest one of each is kept.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Hourly int32 `json:"hourly,omitempty"`
	// daily is the same for days, in UTC.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Daily int32 `json:"daily,omitempty"`
	// weekly is the same for weeks, which begin on Monday, in UTC.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Weekly int32 `json:"weekly,omitempty"`
	// minAge is how old a backup is at least before it is deleted.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="minAge must be a duration of 87600h at most, such as 24h"
	MinAge Duration `json:"minAge,omitempty"`
}

// BackupDestination is a store of backups, and how to get at it.
//
// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure), has(self.volume)].filter(given, given).size() == 1",message="name one store: s3, gcs, azure or volume"
// +kubebuilder:validation:XValidation:rule="!has(self.volume) || !has(self.secretName) && !has(self.serviceAccountName)",message="a volume takes no credentials: leave out secretName and serviceAccountName"
type BackupDestination struct {
	// s3 is a bucket of AWS, or of another store that speaks S3.
	// +optional
	S3 *S3Destination `json:"s3,omitempty"`
	// gcs is a bucket of Google Cloud Storage.
	// +optional
	GCS *GCSDestination `json:"gcs,omitempty"`
	// azure is a container of Azure Blob Storage.
	// +optional
	Azure *AzureDestination `json:"azure,omitempty"`
	// volume is a volume of the cluster's namespace, best one that is not on the nodes of the members.
	// +optional
	Volume *VolumeDestination `json:"volume,omitempty"`
	// secretName is a Secret of the cluster's namespace with credentials for the store. Its keys are named like the
	// environment variables of the store's own tools: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN;
	// AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; and for Google credentials.json, the file that
	// GOOGLE_APPLICATION_CREDENTIALS names.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must be the name of a Secret"
	SecretName string `json:"secretName,omitempty"`
	// serviceAccountName is a ServiceAccount of the cluster's namespace that the store knows by workload identity. Its
	// token is mounted into the pods that back up.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serviceAccountName must be the name of a ServiceAccount"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BackupPrefix is what comes before the names of backups in a bucket, such as etcd or team/etcd.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$')",message="a prefix is made of names of letters, digits, '.', '_' and '-', with '/' between them, such as team/etcd"
type BackupPrefix string

// EndpointURL is the URL of a store.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[-A-Za-z0-9._/]*)?$')",message="an endpoint is a URL such as https://s3.example.com, without credentials or a query"
type EndpointURL string

// S3Destination is a bucket that is reached by S3.
type S3Destination struct {
	// bucket by its name.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$')",message="a bucket has 3 to 63 lower-case letters, digits, '.' and '-'"
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket"`
	// prefix of all names in the bucket.
	// +optional
	Prefix BackupPrefix `json:"prefix,omitempty"`
	// region of the bucket; the one that the pod's environment says where unset.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a region is a name such as eu-central-1"
	Region string `json:"region,omitempty"`
	// endpoint of a store that is not AWS's.
	// +optional
	Endpoint EndpointURL `json:"endpoint,omitempty"`
	// pathStyle puts the bucket into the path of URLs, as many stores that are not AWS's need it.
	// +optional
	PathStyle bool `json:"pathStyle,omitempty"`
	// caSecretName is a Secret of the cluster's namespace whose key ca.crt holds the CA that signs the certificate of the
	// endpoint.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="caSecretName must be the name of a Secret"
	CASecretName string `json:"caSecretName,omitempty"`
	// kmsKey is the key of AWS KMS that all that is stored is encrypted with: its ID, ARN or alias. Unset, the bucket
	// decides. To be restored, a backup needs the key as well.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9:/_-]+$')",message="kmsKey is the ID, the ARN or the alias of a key, such as alias/backups"
	KMSKey string `json:"kmsKey,omitempty"`
	// lockFor is for how long nobody can delete a backup, whatever rights they have: object lock in mode COMPLIANCE, which
	// the bucket must have. Retention leaves a backup as long as it is locked. It is of no effect on what is only read.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1h') && duration(self) <= duration('8760h')",message="lockFor must be a duration between 1h and 8760h, such as 720h"
	LockFor Duration `json:"lockFor,omitempty"`
}

// GCSDestination is a bucket of Google Cloud Storage.
type GCSDestination struct {
	// bucket by its name.
	// +required
	// +kubebuilder:validation:MaxLength=222
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9._-]+[a-z0-9]$')",message="a bucket has 3 or more lower-case letters, digits, '.', '_' and '-'"
	Bucket string `json:"bucket"`
	// prefix of all names in the bucket.
	// +optional
	Prefix BackupPrefix `json:"prefix,omitempty"`
	// endpoint where it is not the public one, such as that of a region.
	// +optional
	Endpoint EndpointURL `json:"endpoint,omitempty"`
}

// AzureDestination is a container of Azure Blob Storage.
type AzureDestination struct {
	// container by its name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{1,61}[a-z0-9])$')",message="a container has 3 to 63 lower-case letters, digits and '-'"
	Container string `json:"container"`
	// prefix of all names in the container.
	// +optional
	Prefix BackupPrefix `json:"prefix,omitempty"`
	// account is the name of the storage account.
	// +required
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]{3,24}$')",message="a storage account has 3 to 24 lower-case letters and digits"
	Account string `json:"account"`
	// endpoint of the account where it is not https://ACCOUNT.blob.core.windows.net, as in a sovereign cloud.
	// +optional
	Endpoint EndpointURL `json:"endpoint,omitempty"`
}

// VolumeDestination is a directory on a volume.
type VolumeDestination struct {
	// claimName is a PersistentVolumeClaim of the cluster's namespace. It is mounted into the pod of each backup: where
	// backups of several clusters share one, it has to be of a kind that several nodes can mount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="claimName must be the name of a PersistentVolumeClaim"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('data-')",message="claims whose names begin with data- are those of members"
	ClaimName string `json:"claimName"`
}

// Location is the URL of the store, such as s3://backups/etcd, or volume://CLAIM. It says nothing of an endpoint.
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

// Place is the store by its URL and, after an @, its endpoint, where that is not the public one of AWS or Google, or the
// partition of AWS, where that is not the public one. Two of one URL need not be one store: each account of Azure, each
// partition of AWS, and each store that speaks S3, may have a bucket of that name. Where a bucket of AWS has no region, the
// environment of the pods says it, and counts as one of the public partition.
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

// partitions are those of AWS but the public one, by how the names of their regions begin, with the domains of their
// endpoints.
var partitions = []struct{ region, name, domain string }{
	{"cn-", "aws-cn", "amazonaws.com.cn"},
	{"us-gov-", "aws-us-gov", "amazonaws.com"},
	{"us-iso-", "aws-iso", "c2s.ic.gov"},
	{"us-isob-", "aws-iso-b", "sc2s.sgov.gov"},
	{"us-isof-", "aws-iso-f", "csp.hci.ic.gov"},
	{"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"},
	{"eusc-", "aws-eusc", "amazonaws.eu"},
}

// Partition is the partition of AWS that the region is in, by its name and the domain of its endpoints; both are empty
// for the public one. The name of a bucket is one in its partition: somebody else may have it in another.
func (d S3Destination) Partition() (name, domain string) {
	for _, p := range partitions { // a region may have something before its name, such as fips-us-gov-west-1
		if strings.HasPrefix(d.Region, p.region) || strings.Contains(d.Region, "-"+p.region) {
			return p.name, p.domain
		}
	}
	return "", ""
}

// endpointNamesAccount reports whether no other account is reached at the endpoint: its host begins with the name, or its
// path does, as that of an emulator.
func (d AzureDestination) endpointNamesAccount() bool {
	_, at, _ := strings.Cut(string(d.Endpoint), "://")
	host, path, _ := strings.Cut(at, "/")
	first, _, _ := strings.Cut(path, "/")
	return d.Endpoint == "" || first == d.Account || strings.HasPrefix(host, d.Account+".")
}

// Endpoint is the URL that the store is reached at; empty where that is the public one of AWS or Google, and for a volume.
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
