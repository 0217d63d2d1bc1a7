package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// concurrency is how many clusters a pass starts on at once.
	concurrency = 16
	// turn is how long a cluster keeps others waiting. One that takes longer, as where nobody
	// answers, goes on beside the next ones: waiting costs nothing.
	turn = 2 * time.Second
	// ClusterTimeout is how long a pass has for observing one cluster and acting on it, unless told
	// otherwise.
	ClusterTimeout = time.Minute
)

// inTurn does n things at once, as many as there are places. Whoever takes longer than a turn gives
// up its place. It returns when each is done or has had its turn; the rest waits for all.
func inTurn(n int, do func(i int)) (rest func()) {
	places := make(chan struct{}, concurrency)
	var turns, all sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		turns.Add(1)
		leave := sync.OnceFunc(func() {
			<-places
			turns.Done()
		})
		late := time.AfterFunc(turn, leave)
		all.Go(func() {
			defer leave()
			defer late.Stop()
			do(i)
		})
	}
	turns.Wait()
	return all.Wait
}

// clusterTime bounds what a pass does for one cluster.
func clusterTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("it took longer than %s, which is all that one cluster has", limit))
}
