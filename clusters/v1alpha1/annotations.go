package v1alpha1

// AnnotationConfirmNewCluster confirms in git that a cluster is new although it looks like another cluster under a new
// name. Its value is the hexadecimal ID of the cluster that git no longer declares, or several IDs, separated by
// commas. The new cluster is then bootstrapped alongside the clusters with these IDs.
const AnnotationConfirmNewCluster = "etcd.quorate.dev/confirm-new-cluster"

// AnnotationConfirmMembers confirms in git that the members that etcd lists have all data that matters. It is required
// after etcd has lost at least half of the recorded voters at the same time, for example because a new cluster was
// forced on one member. The message of MembersMissing contains its value: the hexadecimal IDs of exactly the listed
// members, separated by commas, then a slash and a digest of the recorded members and the volumes. Because of the
// digest, the value is valid only for this loss. The volumes of the other members may then be deleted.
const AnnotationConfirmMembers = "etcd.quorate.dev/confirm-members"

// AnnotationDefragment requests in git that all members be defragmented once, however little space is unused. Its value
// is any text, such as a date. A different value is a new request.
const AnnotationDefragment = "etcd.quorate.dev/defragment"
