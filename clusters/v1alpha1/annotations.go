package v1alpha1

// AnnotationConfirmNewCluster on a declaration in git names, in hexadecimal, the ID of a cluster that git declares no longer and that
// the declared one seems to be under another name, or several, separated by commas: the declared one is another cluster all the
// same, and is founded beside it.
const AnnotationConfirmNewCluster = "etcd.quorate.dev/confirm-new-cluster"

// AnnotationConfirmMembers on a declaration in git names, in hexadecimal and separated by commas, exactly the members that etcd lists after it has
// lost half or more of the voters on record at once, as after a new cluster was forced on one of them: a person has seen that those have all data
// that matters, so the others' volumes may be deleted.
const AnnotationConfirmMembers = "etcd.quorate.dev/confirm-members"
