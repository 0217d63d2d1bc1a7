package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/notify"
	"quorate.dev/quorate/reconcile/notify/deliver"
	"quorate.dev/quorate/reconcile/report"
)

// timeToNotify is the maximum time for notifications, and hurriedNotify is the maximum if the run has timed out or was
// stopped.
const timeToNotify, hurriedNotify = 30 * time.Second, 3 * time.Second

// notifier sends notifications about a run concurrently with its passes.
type notifier struct {
	flags *notifyFlags
	log   *slog.Logger
	// context is the name that identifies the run.
	context string
	// atEnd is set if final notifications are sent only when the run ends.
	atEnd bool

	mu    sync.Mutex
	board notify.Board
	// events holds the events that have not been sent yet.
	events []notify.Event
	// written holds the last status written for each source. failures holds the last error logged for each subject.
	written  map[string]written
	failures map[string]string
	// woken receives a value if there may be something to send. done is closed once ending is closed and all pending
	// requests have finished.
	woken, ending, done chan struct{}
	stop                context.CancelFunc
}

// written is a status that was written to a commit.
type written struct {
	commit string
	status notify.Status
}

// begin starts notifications for a run. It returns nil if none are configured. If kubernetes is not empty, it is
// appended to the name of the run.
func (f *notifyFlags) begin(ctx context.Context, r *reconcile.Reconciler, kubernetes string, atEnd bool) *notifier {
	if len(f.to) == 0 && len(f.hosts) == 0 {
		return nil
	}
	name := f.context
	if kubernetes != "" {
		name += "/" + kubernetes
	}
	n := &notifier{flags: f, log: r.Log, context: name, atEnd: atEnd, written: map[string]written{},
		failures: map[string]string{}, woken: make(chan struct{}, 1),
		ending: make(chan struct{}), done: make(chan struct{})}
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.Progress = both(r.Progress, n.observe)
	go n.follow(ctx)
	return n
}

// observe processes the report of a pass. Errors do not affect the pass.
func (n *notifier) observe(rep report.Report, took time.Duration) {
	n.failed("a pass", panics.Catch(func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.board.Observe(rep, took > 0)
		n.events = append(n.events, notify.News(rep)...)
		return nil
	}))
	select {
	case n.woken <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// follow sends notifications during the run.
func (n *notifier) follow(ctx context.Context) {
	defer close(n.done)
	for {
		select {
		case <-n.ending:
			return
		case <-n.woken:
			within, cancel := context.WithTimeout(ctx, timeToNotify)
			n.tell(within, !n.atEnd)
			cancel()
		}
	}
}

// end sends the remaining notifications within the given time. Notifications not sent by then are lost.
func (n *notifier) end(ctx context.Context, longest time.Duration) {
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	close(n.ending)
	select {
	case <-n.done:
	case <-ctx.Done():
	}
	n.stop()
	<-n.done
	n.tell(ctx, true)
}

// tell sends all notifications in parallel. Unless final is set, it writes only commit statuses with the state Pending.
func (n *notifier) tell(ctx context.Context, final bool) {
	n.mu.Lock()
	var events []notify.Event
	if final {
		events, n.events = n.events, nil
	}
	revision, statuses := n.board.Revision(), map[int]written{}
	for i, h := range n.flags.hosts {
		commit, status := n.board.Commit(h.source)
		if next := (written{commit, status}); commit != "" && n.written[h.source] != next &&
			(final || status.State == notify.Pending) {
			statuses[i] = next
		}
	}
	n.mu.Unlock()
	var all sync.WaitGroup
	for i, s := range statuses {
		all.Go(func() { n.report(ctx, n.flags.hosts[i], s) })
	}
	if len(events) > 0 {
		m := notify.NewMessage(rand.Text(), time.Now(), n.context, revision, events)
		for i, to := range n.flags.to {
			all.Go(func() {
				err := panics.Catch(func() error { return n.post(ctx, to, m) })
				n.failed(fmt.Sprintf("notifications.webhooks[%d]", i), err)
			})
		}
	}
	all.Wait()
}

// report writes the status of a commit to its host.
func (n *notifier) report(ctx context.Context, to commitHost, s written) {
	token, err := secretIn(n.flags.tokenFile) // the token may have been renewed
	if err == nil {
		err = panics.Catch(func() error { return to.host.Report(ctx, token, s.commit, n.context, s.status) })
	}
	n.failed("commitStatus "+to.source, err)
	if err == nil {
		n.mu.Lock()
		n.written[to.source] = s
		n.mu.Unlock()
	}
}

func (n *notifier) post(ctx context.Context, to string, m notify.Message) error {
	e, err := webhookURL(to)
	if err != nil {
		return err
	}
	w := deliver.Webhook{URL: e.url.String(), Format: notify.Format(n.flags.format), Agent: "quorate/" + version()}
	if n.flags.secretFile != "" {
		if w.Secret, err = secretIn(n.flags.secretFile); err != nil {
			return err
		}
	}
	return w.Post(ctx, m)
}

// failed logs why a notification failed, unless the reason is the same as before.
func (n *notifier) failed(what string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		delete(n.failures, what)
		return
	}
	if n.failures[what] != err.Error() {
		n.failures[what] = err.Error()
		n.log.Warn("send notifications", "setting", strings.TrimSpace(what), "error", err)
	}
}
