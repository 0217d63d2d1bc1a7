package v1alpha1

// AnnotationConfirmNewCluster in git confirms that a cluster is new, although it seems to be another cluster under a
// new name. Its value is the ID, in hexadecimal, of the cluster that git no longer declares, or several IDs, separated
// by commas. The new cluster is then bootstrapped alongside the clusters with these IDs.
const AnnotationConfirmNewCluster = "etcd.quorate.dev/confirm-new-cluster"

// AnnotationConfirmMembers in git confirms that the members that etcd lists hold all data that matters. It is required
// after etcd has lost half or more of the recorded voters at the same time, for example after a new cluster was forced
// on one member. Its value is exactly the IDs of the listed members, in hexadecimal, separated by commas. The volumes
// of the other members may then be deleted.
const AnnotationConfirmMembers = "etcd.quorate.dev/confirm-members"
