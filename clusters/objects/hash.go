package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// SpecHash is a digest of all in the declaration that makes a pod run differently, however it is spelled. The version
// is left out, so that a change of it is told apart (hard case H110), but for the digest of its image; so are the pull
// secrets, which are asked for only when a pod is made, and all that is no matter of a pod: the number of replicas, the
// storage. A quota that is left out counts as what it comes to.
func SpecHash(c *v1alpha1.EtcdCluster) string {
	c = c.DeepCopy()
	Normalize(c)
	c.Spec.Etcd.Quota = quotaOf(c.Spec)
	normalizeEtcd(&c.Spec.Etcd)
	return spelledHash(c)
}

// spelledHash is that of the declaration as it is spelled. Pods may have been made with it: SpecHash was no more than
// that.
func spelledHash(c *v1alpha1.EtcdCluster) string {
	spec := c.Spec
	spec.Etcd.Quota = quotaOf(spec)
	text, err := json.Marshal(struct {
		Repository string               `json:"repository"`
		Digest     v1alpha1.ImageDigest `json:"digest,omitempty"`
		TLS        v1alpha1.TLSSpec     `json:"tls"`
		Etcd       v1alpha1.EtcdOptions `json:"etcd"`
		Pod        v1alpha1.PodSpec     `json:"pod"`
	}{spec.Image.Repository, spec.Image.Digests[spec.Version], spec.TLS, spec.Etcd, spec.Pod})
	if err != nil {
		panic(fmt.Sprintf("encode the spec: %v", err)) // plain data: there is nothing that cannot be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
