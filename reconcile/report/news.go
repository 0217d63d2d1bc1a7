package report

// News is something that a pass has told of a cluster, and that the pass before it has not.
type News struct {
	// Warning: somebody should look at it.
	Warning bool
	// Reason is the rule that spoke, or the condition that it is about.
	Reason string
	// Message says it on one line.
	Message string
	// About is what it is about.
	About About
}

// About is what news are about.
type About int

const (
	// AboutCluster is about the cluster itself.
	AboutCluster About = iota
	// AboutSource is about the source that declares it. Each of its clusters has the same news.
	AboutSource
	// AboutRevision says that the source was read at another revision than the last pass has told of.
	AboutRevision
)
