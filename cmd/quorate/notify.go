package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/notify"
	"quorate.dev/quorate/reconcile/notify/deliver"
	"quorate.dev/quorate/reconcile/panics"
	"quorate.dev/quorate/reconcile/report"
)

const (
	// timeToNotify is how long telling others may take at most, and hurriedNotify how long if the run is out of time,
	// or told to stop.
	timeToNotify, hurriedNotify = 30 * time.Second, 3 * time.Second
	// mostOfFile is how much of a file with a secret is read, in bytes.
	mostOfFile = 64 << 10
)

// notifyFlags say whom a run tells what is news, and how commits stand.
type notifyFlags struct {
	// status is KIND or KIND=API.
	status, repository, tokenFile, context string
	// to are URLs, or @FILE with one.
	to         []string
	format     string
	secretFile string

	// given reports whether a flag is; nil where there are no such flags.
	given func(flag string) bool
	hosts []commitHost
}

// commitHost is the host of one source.
type commitHost struct {
	// source by its name in reports, where there are several.
	source string
	host   deliver.Host
}

func (f *notifyFlags) add(flags *pflag.FlagSet) {
	f.given = flags.Changed
	flags.StringVar(&f.status, "report-status", "",
		"write to the commit that was read how it stands: "+inWords(deliver.Kinds())+
			"; gitlab=URL names where the API is (default: where the repository is)")
	flags.StringVar(&f.repository, "report-status-repository", "",
		"URL of the repository that is told, where the only source is a checkout of it (default: the source)")
	flags.StringVar(&f.tokenFile, "report-status-token-file", "",
		"file with the token to write statuses of commits with")
	flags.StringVar(&f.context, "report-status-context", "quorate",
		"name of the status of a commit, and of the run in what --notify posts: each run needs one of its own")
	flags.StringArrayVar(&f.to, "notify", nil,
		"URL to post to what is news, once; or @FILE that holds the URL, where it is a secret; repeatable")
	flags.StringVar(&f.format, "notify-format", "json", "what is posted: json, slack or cloudevents")
	flags.StringVar(&f.secretFile, "notify-secret-file", "",
		"file with the secret that signs what --notify posts, as Standard Webhooks has it (default: it is not signed)")
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,39}$`)

// checkAlone refuses what is wrong whatever the files hold that are named.
func (f *notifyFlags) checkAlone() error {
	var alone []error
	for _, pair := range [][2]string{
		{"report-status-repository", "report-status"}, {"report-status-token-file", "report-status"},
		{"notify-format", "notify"}, {"notify-secret-file", "notify"},
	} {
		if flag, needs := pair[0], pair[1]; f.given(flag) && !f.given(needs) {
			alone = append(alone, fmt.Errorf("--%s: it means nothing without --%s", flag, needs))
		}
	}
	if err := usage(alone); err != nil {
		return err
	}
	if !contextName.MatchString(f.context) {
		return usageError{errors.New("--report-status-context: want up to 40 letters, digits and any of . _ / -")}
	}
	if err := oneOf("notify-format", f.format, string(notify.JSON), string(notify.Slack),
		string(notify.CloudEvents)); err != nil {
		return err
	}
	for _, to := range f.to {
		if strings.HasPrefix(to, "@") {
			continue
		}
		if _, err := webhookURL(to); err != nil {
			return usageError{fmt.Errorf("--notify: %w", err)}
		}
	}
	return nil
}

// check refuses what could not be done later.
func (f *notifyFlags) check(s *sourceFlags) error {
	if f.given == nil {
		return nil
	}
	if err := f.checkAlone(); err != nil {
		return err
	}
	for _, to := range f.to {
		if _, err := webhookURL(to); err != nil {
			return usageError{fmt.Errorf("--notify: %w", err)}
		}
	}
	if f.secretFile != "" {
		secret, err := secretIn(f.secretFile)
		if err == nil {
			_, err = notify.Sign(secret, "", time.Time{}, nil)
		}
		if err != nil {
			return usageError{fmt.Errorf("--notify-secret-file: %w", err)}
		}
	}
	return f.checkStatus(s)
}

// secretIn is what a file holds, on one line.
func secretIn(file string) (string, error) {
	text, err := os.ReadFile(file)
	text = bytes.TrimSpace(text)
	switch {
	case err != nil:
		return "", err
	case len(text) == 0 || len(text) > mostOfFile || bytes.ContainsAny(text, "\r\n\x00"):
		return "", fmt.Errorf("%s: want one line", file)
	}
	return string(text), nil
}

// webhookURL is the URL that a value of --notify stands for. It may be a secret: no error has it.
func webhookURL(to string) (endpoint, error) {
	if file, is := strings.CutPrefix(to, "@"); is {
		text, err := secretIn(file)
		if err != nil {
			return endpoint{}, err
		}
		to = text
	}
	if to == "" {
		return endpoint{}, errors.New("want a URL, or @FILE")
	}
	return parseEndpoint(to)
}

func (f *notifyFlags) checkStatus(s *sourceFlags) error {
	if f.status == "" {
		return nil
	}
	refuse := func(err error) error { return usageError{fmt.Errorf("--report-status: %w", err)} }
	if s.live() {
		return refuse(fmt.Errorf("--source %s: no git repository is read, so there is no commit", ofCluster))
	}
	if f.tokenFile == "" {
		return refuse(errors.New("want --report-status-token-file"))
	}
	if _, err := secretIn(f.tokenFile); err != nil {
		return usageError{fmt.Errorf("--report-status-token-file: %w", err)}
	}
	kind, api, named := strings.Cut(f.status, "=")
	if err := oneOf("report-status", kind, deliver.Kinds()...); err != nil {
		return err
	}
	var err error
	if at, wrong := parseEndpoint(api); wrong != nil {
		err = wrong
	} else if named && (!at.given() || at.url.User != nil || at.url.RawQuery != "" || at.url.Fragment != "") {
		err = errors.New("want the URL of an API after =, without credentials")
	}
	if err != nil {
		return refuse(err)
	}
	sources, err := s.sources(func(source) error { return nil })
	if err != nil {
		return err // it was checked before
	}
	if f.repository != "" {
		if len(sources) > 1 {
			return usageError{errors.New("--report-status-repository: it says where one source is; there are several")}
		}
		sources[0].location = f.repository
	}
	f.hosts, err = hostsOf(kind, api, sources)
	if err != nil {
		return refuse(err)
	}
	return nil
}

// hostsOf are the hosts that are told of the commits of sources. A token is for one host.
func hostsOf(kind, api string, sources []source) ([]commitHost, error) {
	labels := []string{""}
	if len(sources) > 1 {
		labels = labelsOf(sources)
	}
	var hosts []commitHost
	names := map[string]bool{}
	for i, s := range sources {
		if !remote.IsAddress(s.location) {
			continue
		}
		repository, err := remote.ParseAddress(s.location)
		if err != nil {
			return nil, err
		}
		if api != "" && len(sources) > 1 && !serves(api, deliver.Name(repository)) {
			continue
		}
		host, err := deliver.NewHost(kind, api, repository)
		if err != nil {
			return nil, err
		}
		at, err := url.Parse(host.API())
		if err != nil {
			return nil, errors.New("the URL of the API is not valid")
		}
		if at.Scheme != "https" && !isLoopback(at.Hostname()) {
			return nil, fmt.Errorf("the token would cross the network to %s in the clear; name an API at https, "+
				"%s=https://…", at.Host, kind)
		}
		host.Agent = "quorate/" + version()
		names[at.Host], hosts = true, append(hosts, commitHost{labels[i], host})
	}
	switch {
	case len(hosts) == 0:
		return nil, errors.New("no source is a repository at a host that is told; " +
			"for a checkout of one, give its URL, --report-status-repository URL")
	case len(names) > 1:
		return nil, fmt.Errorf("the sources are at several hosts, and the token is for one; name its API, %s=URL", kind)
	}
	return hosts, nil
}

// serves reports whether an API is that of a host.
func serves(api, host string) bool {
	u, err := url.Parse(api)
	return err == nil && strings.TrimPrefix(strings.ToLower(u.Hostname()), "api.") == host
}

// notifier tells others of a run, beside its passes.
type notifier struct {
	flags *notifyFlags
	log   *slog.Logger
	// context is the name that tells the run from others.
	context string
	// atEnd: nothing is told for good before the run ends.
	atEnd bool

	mu    sync.Mutex
	board notify.Board
	// events are those that nobody has been told of.
	events []notify.Event
	// written is what was last written, by source, and failures what was last logged, by what it is about.
	written  map[string]written
	failures map[string]string
	// woken has something in it once there is something to tell. After ending is closed, done is, once nobody is
	// being told any more.
	woken, ending, done chan struct{}
	stop                context.CancelFunc
}

// written is the status of a commit.
type written struct {
	commit string
	status notify.Status
}

// begin has a run told of, if anybody is to be; nil if nobody is. Of several Kubernetes clusters each is told of by a
// name of its own.
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

// observe takes in the report of a pass. Whatever goes wrong with that is no matter of the pass.
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
	default: // it looks anyway
	}
}

// follow tells what there is to tell while the run goes on.
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

// end tells what is left, within that time. What has not been told by then is lost.
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

// tell tells everybody at once. Unless it is final, nobody is told but of commits, and of them what is pending.
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
				n.failed(fmt.Sprintf("--notify %d", i+1), panics.Catch(func() error { return n.post(ctx, to, m) }))
			})
		}
	}
	all.Wait()
}

// report tells the host of a commit how it stands.
func (n *notifier) report(ctx context.Context, to commitHost, s written) {
	token, err := secretIn(n.flags.tokenFile) // it may have been renewed
	if err == nil {
		err = panics.Catch(func() error { return to.host.Report(ctx, token, s.commit, n.context, s.status) })
	}
	n.failed("--report-status "+to.source, err)
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

// failed logs why somebody could not be told, if that is another reason than the last time.
func (n *notifier) failed(what string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		delete(n.failures, what)
		return
	}
	if n.failures[what] != err.Error() {
		n.failures[what] = err.Error()
		n.log.Warn("tell of the run", "flag", strings.TrimSpace(what), "error", err)
	}
}
