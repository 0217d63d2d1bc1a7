package scenarios

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ledger records the writes of applications during a scenario, each with the revision at which etcd acknowledged it.
// Every key is written only once.
type ledger struct {
	t     testing.TB
	stop  context.CancelFunc
	group sync.WaitGroup

	mutex sync.Mutex
	// acknowledged maps keys to revisions. asked contains all keys that may exist.
	acknowledged map[string]int64
	asked        map[string]bool
}

// ledgerKeys is the prefix of all keys in a ledger.
const ledgerKeys = "ledger/"

// writeLedger starts the given number of applications, which write to cluster a without pauses. members is the number
// of members in the cluster.
func (w *world) writeLedger(applications, members int) *ledger {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.ctx())
	l := &ledger{t: w.t, stop: stop, acknowledged: map[string]int64{}, asked: map[string]bool{}}
	for id := range applications {
		client, err := w.application(members)
		if err != nil {
			stop()
			w.t.Fatal(err)
		}
		l.group.Go(func() {
			defer client.Close()
			for n := 0; ctx.Err() == nil; n++ {
				l.write(ctx, client, fmt.Sprintf("%s%d-%06d", ledgerKeys, id, n))
			}
		})
	}
	w.t.Cleanup(func() { stop(); l.group.Wait() })
	return l
}

func (l *ledger) write(ctx context.Context, client *clientv3.Client, key string) {
	l.mutex.Lock()
	l.asked[key] = true
	l.mutex.Unlock()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	answer, err := client.Put(within, key, "value of "+key)
	if err != nil {
		return // the key may have been written nevertheless
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.acknowledged[key] = answer.Header.Revision
}

// end stops the applications.
func (l *ledger) end() {
	l.stop()
	l.group.Wait()
}

// requireUntil fails the test unless etcd contains exactly the writes up to the given revision: all that were
// acknowledged at or before it, and none after it.
func (l *ledger) requireUntil(c *clientv3.Client, revision int64) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	found, err := c.Get(ctx, ledgerKeys, clientv3.WithPrefix())
	if err != nil {
		l.t.Fatal(err)
	}
	written := map[string]int64{}
	for _, kv := range found.Kvs {
		key := string(kv.Key)
		written[key] = kv.ModRevision
		acknowledged, was := l.acknowledged[key]
		if !l.asked[key] || string(kv.Value) != "value of "+key || kv.ModRevision > revision || was && acknowledged != kv.ModRevision {
			l.t.Errorf("%s is %q of revision %d; it was written at %d, and the backup is of %d", key, kv.Value, kv.ModRevision, acknowledged, revision)
		}
	}
	before, after := 0, 0
	for key, at := range l.acknowledged {
		switch {
		case at > revision:
			after++
		case written[key] == 0:
			l.t.Errorf("%s, acknowledged at revision %d, is lost; the backup is of %d", key, at, revision)
		default:
			before++
		}
	}
	if before == 0 || after == 0 {
		l.t.Errorf("%d writes were acknowledged before the backup and %d after it: there was no concurrent writing", before, after)
	}
	l.t.Logf("%d writes were acknowledged until the backup, which are all there, and %d after it", before, after)
}
