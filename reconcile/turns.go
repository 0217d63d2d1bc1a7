package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// concurrency is the number of clusters that a pass processes at the same time.
	concurrency = 16
	// turn is the maximum time by which a cluster delays other clusters. A slower cluster, for example because etcd
	// does not respond, continues in parallel with the next clusters. Waiting for it uses hardly any resources.
	turn = 2 * time.Second
	// ClusterTimeout is the default time limit for observing a cluster and acting on it in one pass.
	ClusterTimeout = time.Minute
)

// inTurn calls do n times, with up to concurrency calls at the same time. A call that takes longer than a turn no
// longer counts toward that limit. inTurn returns when each call has ended or used up its turn; rest waits for all
// calls.
func inTurn(n int, do func(i int)) (rest func()) {
	slots := make(chan struct{}, concurrency)
	var turns, all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		turns.Add(1)
		leave := sync.OnceFunc(func() {
			<-slots
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

// clusterTime returns a context that limits how long a pass spends on one cluster.
func clusterTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("processing the cluster took longer than %s, the maximum per cluster", limit))
}
