package report

// News is information about a cluster that a pass reports and the previous pass did not report.
type News struct {
	// Warning is set if the news needs attention.
	Warning bool
	// Reason is the rule that decided, or the condition that the news is about.
	Reason string
	// Message is the text, on one line.
	Message string
	// About is the subject of the news.
	About About
}

// About is the subject of news.
type About int

const (
	// AboutCluster means that the news is about the cluster itself.
	AboutCluster About = iota
	// AboutSource means that the news is about the source that declares the cluster. All clusters of the source have
	// the same news.
	AboutSource
	// AboutRevision means that the source was read at a different revision than in the report of the last pass.
	AboutRevision
)
