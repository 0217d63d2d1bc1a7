package gitsource

// Bounds on what is read of a source, all far over what an honest one needs.
const (
	// maxRefsBytes of the list of branches and tags, which a server sends first.
	maxRefsBytes = 32 << 20
	// maxResponseBytes of one answer of a server: a pack of one revision.
	maxResponseBytes = 256 << 20
	// maxPackBytes and maxPackObjects of a pack as its headers declare them, inflated.
	maxPackBytes   = 512 << 20
	maxPackObjects = 500_000
	// maxFileBytes of one file. The API server takes no object over 1.5 MiB.
	maxFileBytes = 2 << 20
	// maxTotalBytes and maxFiles of all that is read below the path.
	maxTotalBytes = 16 << 20
	maxFiles      = 10_000
	// maxDepth of directories below the path.
	maxDepth = 32
	// maxKustomizations that one rendering reads, each as often as it is a base of another.
	maxKustomizations = 5000
	// maxNodes of one YAML document once its aliases are expanded, maxTotalNodes of all
	// that are read, and how deep they may nest. A node takes some hundred bytes.
	maxNodes      = 100_000
	maxTotalNodes = 2_000_000
	maxNesting    = 64
)
