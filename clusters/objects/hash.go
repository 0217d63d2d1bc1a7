package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// SpecHash returns a digest of all declared fields that affect how a pod runs, regardless of their notation. It
// excludes the version, so that a version change can be recognized (hard case H110), but includes the digest of the
// version's image. It also excludes the pull secrets, which matter only when a pod is created, and everything that does
// not concern pods, such as replicas, storage and names in certificates. A missing quota counts as its default.
func SpecHash(c *v1alpha1.EtcdCluster) string {
	c = c.DeepCopy()
	Normalize(c)
	c.Spec.Etcd.Quota = quotaOf(c.Spec)
	normalizeEtcd(&c.Spec.Etcd)
	return spelledHash(c)
}

// spelledHash returns the hash of the declaration as written, without normalization. Existing pods may have this hash,
// because SpecHash once computed it this way.
func spelledHash(c *v1alpha1.EtcdCluster) string {
	spec := c.Spec
	spec.Etcd.Quota = quotaOf(spec)
	// Passes carry these out.
	spec.Etcd.Defragmentation, spec.Etcd.CorruptionCheck, spec.Etcd.OnNoSpace = nil, nil, ""
	spec.TLS.ServiceNames = nil                                     // etcd reloads its certificate without a restart
	text, err := json.Marshal(struct {
		Repository string               `json:"repository"`
		Digest     v1alpha1.ImageDigest `json:"digest,omitempty"`
		TLS        v1alpha1.TLSSpec     `json:"tls"`
		Etcd       v1alpha1.EtcdOptions `json:"etcd"`
		Pod        v1alpha1.PodSpec     `json:"pod"`
		AdoptedCA  string               `json:"adoptedCA,omitempty"`
	}{spec.Image.Repository, spec.Image.Digests[spec.Version], spec.TLS, spec.Etcd, spec.Pod, AdoptedCA(c)})
	if err != nil {
		panic(fmt.Sprintf("encode the spec: %v", err)) // plain data can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
