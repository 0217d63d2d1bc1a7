package v1alpha1

// AnnotationFoundsBeside on a declaration in git names, in hexadecimal, the ID of a cluster that git declares no longer and that
// the declared one seems to be under another name, or several, separated by commas: the declared one is another cluster all the
// same, and is founded beside it.
const AnnotationFoundsBeside = "etcd.quorate.dev/founds-beside"
