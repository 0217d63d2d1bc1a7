package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// timeToTell is the timeout for reporting on a cluster. It is shorter than the 30 s that Kubernetes gives a pod to
// stop.
const timeToTell = 20 * time.Second

// guarded returns the entry that f creates for a cluster. If f panics, partial results are discarded, and the entry
// contains only the error, which is also returned.
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

// act executes an action. A panic is returned as an error; it is then unknown which changes were made, as if the
// process had died.
func act(ctx context.Context, cluster Cluster, action decide.Action) (outcome report.Outcome, err error) {
	err = panics.Catch(func() (err error) {
		outcome, err = cluster.Do(ctx, action)
		return err
	})
	return outcome, err
}

// tell calls Report, and returns a panic as an error. It calls Report even if the pass is stopped after its decision,
// because otherwise an action could go unreported.
func tell(
	ctx context.Context, cluster Cluster, entry report.Cluster, source SourceStatus,
) (news []report.News, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeToTell)
	defer cancel()
	err = panics.Catch(func() (err error) {
		news, err = cluster.Report(ctx, entry, source)
		return err
	})
	return news, err
}

// stack returns the stack of a panic as a log attribute, or an empty attribute for other errors.
func stack(err error) slog.Attr {
	if caught, is := errors.AsType[*panics.Error](err); is {
		return slog.String("stack", caught.Stack)
	}
	return slog.Attr{}
}
