package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/panics"
	"quorate.dev/quorate/reconcile/report"
)

// timeToTell is how long the report of a cluster may take. It is less than the 30 s that Kubernetes
// gives a pod to stop.
const timeToTell = 20 * time.Second

// guarded returns the entry of one cluster that f makes. If f panics, all that the entry says is
// the error, which is returned too: what was found out until then may be half of it.
func guarded(cluster Cluster, f func() report.Cluster) (entry report.Cluster, err error) {
	err = panics.Catch(func() error {
		entry = f()
		return nil
	})
	if err != nil {
		entry = report.Cluster{Error: oneLine(err)}
		entry.Namespace, entry.Name = cluster.Identity()
	}
	return entry, err
}

// act carries out an action. A panic is an error like others: what was done until then is not
// known, as if the process had died.
func act(ctx context.Context, cluster Cluster, action decide.Action) (outcome report.Outcome, err error) {
	err = panics.Catch(func() (err error) {
		outcome, err = cluster.Do(ctx, action)
		return err
	})
	return outcome, err
}

// tell has the cluster report. A panic is an error like others. A pass that is told to stop once it
// has decided still tells what it found: cut short there, it would have done something that nobody
// is told about.
func tell(
	ctx context.Context, cluster Cluster, entry report.Cluster, source SourceState,
) (news []report.News, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeToTell)
	defer cancel()
	err = panics.Catch(func() (err error) {
		news, err = cluster.Report(ctx, entry, source)
		return err
	})
	return news, err
}

// stack is for the log: where it was that something panicked. It is empty for other errors.
func stack(err error) slog.Attr {
	if caught, is := errors.AsType[*panics.Error](err); is {
		return slog.String("stack", caught.Stack)
	}
	return slog.Attr{}
}
