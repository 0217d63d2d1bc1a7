package fleet

import (
	"strings"
	"sync"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/report"
)

// Each calls do with the index of each named Kubernetes cluster, in parallel, and returns the reports. If do fails or
// panics for a cluster, the cluster's report contains the error.
func Each(names []string, do func(i int) (report.Report, error)) []report.Part {
	parts := make([]report.Part, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			parts[i].Kubernetes = name
			err := panics.Catch(func() (err error) {
				parts[i].Report, err = do(i)
				return err
			})
			if err != nil {
				parts[i].Report = report.Report{Error: strings.ReplaceAll(err.Error(), "\n", "; ")}
			}
		})
	}
	all.Wait()
	return parts
}
