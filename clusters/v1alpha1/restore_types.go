package v1alpha1

import (
	"slices"
	"strings"
)

// RestoreSpec specifies the source of a new cluster's data: a backup, a running etcd cluster, or the volumes of a
// stopped etcd cluster. It has no effect once the cluster has formed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.from.etcd) || !has(self.cluster) && !has(self.backup) && !has(self.identitySecretName)",message="restore.from.etcd is not a store; omit restore.cluster, restore.backup and restore.identitySecretName"
// +kubebuilder:validation:XValidation:rule="!has(self.from.claims) || !has(self.cluster) && !has(self.backup) && !has(self.identitySecretName)",message="restore.from.claims is not a store; omit restore.cluster, restore.backup and restore.identitySecretName"
type RestoreSpec struct {
	// from is the store that contains the backup, a running etcd cluster, or the volumes of a stopped etcd cluster. The
	// administrator configures which sources are allowed. By default, no sources are allowed.
	// +required
	From RestoreSource `json:"from"`
	// cluster is the cluster that was backed up, as NAMESPACE/NAME. Defaults to the namespace and name of this cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?$')",message="cluster must be NAMESPACE/NAME, such as prod/a"
	Cluster string `json:"cluster,omitempty"`
	// backup is the time of the backup, as shown by quorate backups list, such as 20261121t180000z. Defaults to the
	// newest backup that is usable when the cluster is created. It is required if the store contains backups with
	// several cluster IDs.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{8}t[0-9]{6}z$')",message="a backup must be named by its time, such as 20261121t180000z"
	Backup string `json:"backup,omitempty"`
	// identitySecretName is the name of a Secret in the cluster's namespace. Its key identity.txt contains the age
	// identity to decrypt an encrypted backup.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
	// revisionBump is the number by which etcd's revision is raised, so that existing watchers list again instead of
	// missing changes. Defaults to 1000000000.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	RevisionBump int64 `json:"revisionBump,omitempty"`
	// deadline is the maximum duration of the restore, including retries. Defaults to 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}

// RestoreSource is a store that contains backups, a running etcd cluster, or the volumes of a stopped etcd cluster.
//
// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure), has(self.volume), has(self.etcd), has(self.claims)].filter(given, given).size() == 1",message="set exactly one source: s3, gcs, azure, volume, etcd or claims"
// +kubebuilder:validation:XValidation:rule="!has(self.etcd) || !has(self.secretName) && !has(self.serviceAccountName)",message="set the credentials for etcd in etcd.secretName; omit secretName and serviceAccountName"
// +kubebuilder:validation:XValidation:rule="!has(self.claims) || !has(self.secretName) && !has(self.serviceAccountName)",message="claims do not use credentials; omit secretName and serviceAccountName"
type RestoreSource struct {
	BackupDestination `json:",inline"`
	// etcd is a running etcd cluster, which another tool may have created. Its data is copied. The cluster itself is only
	// read.
	// +optional
	Etcd *EtcdSource `json:"etcd,omitempty"`
	// claims names the volumes of a stopped etcd cluster, which another tool may have created. Its data is copied. The
	// volumes are mounted read-only.
	// +optional
	Claims *ClaimsSource `json:"claims,omitempty"`
}

// Copies reports whether the source is an etcd cluster whose data is copied, and not a store.
func (s RestoreSource) Copies() bool { return s.Etcd != nil || s.Claims != nil }

// CopiedClusterID returns the cluster ID of the etcd cluster whose data is copied, in hexadecimal, or "" if the source
// is a store.
func (s RestoreSource) CopiedClusterID() string {
	switch {
	case s.Etcd != nil:
		return s.Etcd.ClusterID
	case s.Claims != nil:
		return s.Claims.ClusterID
	}
	return ""
}

// EtcdSource is a running etcd cluster whose data is copied.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretName) || self.endpoints.all(url, url.startsWith('http://'))",message="endpoints with https require secretName; its key ca.crt verifies the members' certificates"
type EtcdSource struct {
	// clusterID is the cluster ID that the members must report, in hexadecimal, as in the output of etcdctl endpoint
	// status --write-out=fields --hex.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^0*[1-9a-f][0-9a-f]*$')",message="clusterID must be the cluster ID of the source, in hexadecimal digits"
	ClusterID string `json:"clusterID"`
	// endpoints lists the client URL of every voter. A majority of these members must respond.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:XValidation:rule="self.all(url, url.startsWith('https://')) || self.all(url, url.startsWith('http://'))",message="endpoints must all begin with https://, or all with http://"
	Endpoints []EtcdEndpoint `json:"endpoints"`
	// secretName is the name of a Secret in the new cluster's namespace with the credentials for the source. Keys that
	// the source does not need may be missing. ca.crt, which https requires, verifies the members' certificates, which
	// must be valid for the hosts in endpoints. tls.crt and tls.key are the client certificate and its key. username and
	// password belong to an etcd user with the role root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must be the name of a Secret"
	SecretName string `json:"secretName,omitempty"`
	// acceptLag accepts a copy that lacks the newest changes, and that a quorum may not have confirmed. If it is not set,
	// the source is copied again if its revision has changed during the copy, and the restore fails if the source's
	// clients do not stop.
	// +optional
	AcceptLag bool `json:"acceptLag,omitempty"`
}

// ClaimsSource is the data of a stopped etcd cluster, on the volumes of its members.
type ClaimsSource struct {
	// clusterID is the cluster ID of the data, in hexadecimal, as in the output of etcdctl endpoint status
	// --write-out=fields --hex.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^0*[1-9a-f][0-9a-f]*$')",message="clusterID must be the cluster ID of the source, in hexadecimal digits"
	ClusterID string `json:"clusterID"`
	// names lists the PersistentVolumeClaims of the members, in the new cluster's namespace. A majority of the voters is
	// required, because an acknowledged write may be missing from the others. The data whose log ends last is copied.
	// All claims must be mountable on one node.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Names []ClaimName `json:"names"`
	// path is the data directory on each volume, such as data/default.etcd, or . for the volume's root. By default, the
	// volume is searched for a single data directory, up to two levels below its root.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([.]|[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*)$')",message="path must be . or a relative path such as data/default.etcd, whose names begin with a letter, digit or underscore"
	Path string `json:"path,omitempty"`
	// runAsUser is the ID of the user that reads the volumes. It must own the data, because etcd makes it inaccessible to
	// other users. User 0 has no capabilities. Defaults to 65532.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// acceptLag accepts data that may lack acknowledged writes, such as the data of a minority of the voters.
	// +optional
	AcceptLag bool `json:"acceptLag,omitempty"`
}

// ClaimName is the name of a PersistentVolumeClaim.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="a name must be the name of a PersistentVolumeClaim"
type ClaimName string

// EtcdEndpoint is the client URL of an etcd member.
//
// +kubebuilder:validation:MaxLength=267
// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([a-z0-9]([-a-z0-9.]*[a-z0-9])?|[[][0-9a-f:.]{2,45}[]]):[0-9]{1,5}$')",message="an endpoint must be a URL with a lowercase host and a port, such as https://etcd-0.etcd.prod.svc:2379"
type EtcdEndpoint string

// Address returns the host and the port.
func (e EtcdEndpoint) Address() string {
	_, address, _ := strings.Cut(string(e), "://")
	return address
}

// Secure reports whether connections to the source are encrypted.
func (e EtcdSource) Secure() bool {
	secure := func(url EtcdEndpoint) bool { return strings.HasPrefix(string(url), "https://") }
	return slices.ContainsFunc(e.Endpoints, secure)
}
