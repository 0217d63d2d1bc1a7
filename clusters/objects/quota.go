package objects

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// mostQuota is the largest default quota. It equals etcd's own default.
const mostQuota = 2 << 30

// DefaultQuota returns the default database quota for a volume of the given size: half the size, in whole mebibytes,
// up to 2Gi. The other half is for the write-ahead log, snapshots, and the second copy that defragmentation writes.
func DefaultQuota(size resource.Quantity) resource.Quantity {
	// Do not compute the exact value: for a size such as 1e20000000, it takes seconds.
	half := int64(min(size.AsApproximateFloat64()/2, mostQuota))
	return *resource.NewQuantity(max(half, 0)>>20<<20, resource.BinarySI)
}

// quotaOf returns the declared quota, or the default quota for the declared volume size.
func quotaOf(spec v1alpha1.EtcdClusterSpec) resource.Quantity {
	if spec.Etcd.Quota.IsZero() {
		return DefaultQuota(spec.Storage.Size)
	}
	return spec.Etcd.Quota
}

// inspectionMemory returns the memory limit of a container that inspects a database: least, or more if the quota
// exceeds 8Gi. Checking the database takes about 50 bytes for each 4 KiB page.
func inspectionMemory(spec v1alpha1.EtcdClusterSpec, least string) resource.Quantity {
	const enough, mebibyte = 8 << 30, 1 << 20
	memory, quota := resource.MustParse(least), quotaOf(spec)
	if more := ApproximateBytes(quota) - enough; more > 0 {
		memory.Add(*resource.NewQuantity(more/64/mebibyte*mebibyte, resource.BinarySI))
	}
	return memory
}

// ApproximateBytes returns a quantity as a number of bytes, up to 2^62. It does not compute the exact value: for
// 1e20000000, that would take seconds.
func ApproximateBytes(q resource.Quantity) int64 { return int64(min(q.AsApproximateFloat64(), 1<<62)) }
