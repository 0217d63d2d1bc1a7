package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// concurrency is how many clusters a pass works on at the same time.
	concurrency = 16
	// turn is how long a cluster delays others. A slower one, for example if etcd does not respond, continues next to
	// the following ones: waiting costs nothing.
	turn = 2 * time.Second
	// ClusterTimeout is the default time limit for observing one cluster in a pass and acting on it.
	ClusterTimeout = time.Minute
)

// inTurn does n things concurrently, limited by the number of places. One that takes longer than a turn releases its
// place. inTurn returns when each thing is done or has used its turn; rest waits for all of them.
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

// clusterTime returns a context that limits the time of a pass for one cluster.
func clusterTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("it took longer than %s, which is all that one cluster has", limit))
}
