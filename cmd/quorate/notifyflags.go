package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/reconcile/notify"
	"quorate.dev/quorate/reconcile/notify/deliver"
)

// mostOfFile is the maximum size of a file that contains a secret, in bytes.
const mostOfFile = 64 << 10

// notifyFlags specify where a run sends notifications and commit statuses.
type notifyFlags struct {
	// status is KIND or KIND=API.
	status, repository, tokenFile, context string
	// to contains URLs, or @FILE for a file that contains a URL.
	to         []string
	format     string
	secretFile string

	// given reports whether a flag is set. It is nil if the command has no notification flags.
	given func(flag string) bool
	// named returns how the user has set a flag, for errors.
	named func(flag string) string
	hosts []commitHost
}

// commitHost is the git host of a source.
type commitHost struct {
	// source is the name of the source in reports, if there are several sources.
	source string
	host   deliver.Host
}

func (f *notifyFlags) add(flags *pflag.FlagSet) {
	f.given, f.named = flags.Changed, nameOf
	flags.StringVar(&f.status, "report-status", "",
		"write a commit status to the commit that was read: "+inWords(deliver.Kinds())+
			"; gitlab=URL sets the API URL (default: the repository's host)")
	flags.StringVar(&f.repository, "report-status-repository", "",
		"URL of the repository that receives commit statuses, if the only source is a local checkout of it (default: "+
			"the source)")
	flags.StringVar(&f.tokenFile, "report-status-token-file", "",
		"file with the token for writing commit statuses")
	flags.StringVar(&f.context, "report-status-context", "quorate",
		"name of the commit status, and of the run in posts to webhooks; must be unique for each run")
	flags.StringArrayVar(&f.to, "notify", nil,
		"webhook URL to post changes to, or @FILE containing the URL if it is secret; repeatable")
	flags.StringVar(&f.format, "notify-format", "json", "format of posts: json, slack or cloudevents")
	flags.StringVar(&f.secretFile, "notify-secret-file", "",
		"file with the secret for signing posts according to Standard Webhooks (default: unsigned)")
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,39}$`)

// checkAlone rejects flags that are invalid regardless of the content of any files.
func (f *notifyFlags) checkAlone() error {
	var alone []error
	for _, pair := range [][2]string{
		{"report-status-repository", "report-status"}, {"report-status-token-file", "report-status"},
		{"notify-format", "notify"}, {"notify-secret-file", "notify"},
	} {
		if flag, needs := pair[0], pair[1]; f.given(flag) && !f.given(needs) {
			alone = append(alone, fmt.Errorf("%s: requires %s", f.named(flag), nameOf(needs)))
		}
	}
	if err := usage(alone); err != nil {
		return err
	}
	if err := checkContext(f.context); err != nil {
		return usageError{fmt.Errorf("commitStatus.context: %w", err)}
	}
	if err := oneOf("notify-format", f.format, choices["notify-format"]...); err != nil {
		return err
	}
	if err := f.checkWebhooks(false); err != nil {
		return err
	}
	return f.checkHost()
}

// checkWebhooks rejects invalid URLs of webhooks: those in files, or those on the command line.
func (f *notifyFlags) checkWebhooks(inFiles bool) error {
	for _, to := range f.to {
		if strings.HasPrefix(to, "@") != inFiles {
			continue
		}
		if _, err := webhookURL(to); err != nil {
			return usageError{fmt.Errorf("notifications.webhooks: %w", err)}
		}
	}
	return nil
}

// checkHost rejects a commit status without a token, and an invalid host.
func (f *notifyFlags) checkHost() error {
	if f.status == "" {
		return nil
	}
	if f.tokenFile == "" {
		return f.refuseHost(errors.New("requires commitStatus.tokenFile"))
	}
	kind, api, named := strings.Cut(f.status, "=")
	if err := oneOf("report-status", kind, deliver.Kinds()...); err != nil {
		return err
	}
	at, err := parseEndpoint(api)
	if err == nil && named && (!at.given() || at.url.User != nil || at.url.RawQuery != "" || at.url.Fragment != "") {
		err = errors.New("expected an API URL after =, without credentials")
	}
	if err != nil {
		return f.refuseHost(err)
	}
	return nil
}

func (f *notifyFlags) refuseHost(err error) error {
	return usageError{fmt.Errorf("%s: %w", f.named("report-status"), err)}
}

// check rejects settings that would fail later.
func (f *notifyFlags) check(s *sourceFlags) error {
	if f.given == nil {
		return nil
	}
	if err := f.checkAlone(); err != nil {
		return err
	}
	if err := f.checkWebhooks(true); err != nil {
		return err
	}
	if f.secretFile != "" {
		secret, err := secretIn(f.secretFile)
		if err == nil {
			_, err = notify.Sign(secret, "", time.Time{}, nil)
		}
		if err != nil {
			return usageError{fmt.Errorf("notifications.secretFile: %w", err)}
		}
	}
	if f.tokenFile != "" {
		if _, err := secretIn(f.tokenFile); err != nil {
			return usageError{fmt.Errorf("commitStatus.tokenFile: %w", err)}
		}
	}
	return f.checkHosts(s)
}

// secretIn returns the only line of a file.
func secretIn(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostOfFile+1))
	if err != nil {
		return "", err
	}
	line := bytes.TrimSpace(text)
	if len(line) == 0 || len(text) > mostOfFile || bytes.ContainsAny(line, "\r\n\x00") {
		return "", fmt.Errorf("%s: must contain exactly one line", file)
	}
	return string(line), nil
}

// webhookURL returns the URL for a value of notifications.webhooks. Errors do not contain the URL, which may be secret.
func webhookURL(to string) (endpoint, error) {
	if file, is := strings.CutPrefix(to, "@"); is {
		text, err := secretIn(file)
		if err != nil {
			return endpoint{}, err
		}
		to = text
	}
	if to == "" {
		return endpoint{}, errors.New("expected a URL or @FILE")
	}
	return parseEndpoint(to)
}

// checkHosts determines the git hosts of the sources. The sources must already have been checked.
func (f *notifyFlags) checkHosts(s *sourceFlags) error {
	if f.status == "" {
		return nil
	}
	if s.live() {
		return f.refuseHost(fmt.Errorf("--source %s: no git repository is read, so there is no commit", ofCluster))
	}
	list, err := s.parsed()
	if err != nil {
		return err
	}
	if f.repository != "" {
		if len(list) > 1 {
			return usageError{fmt.Errorf("%s: applies to one source, but there are several",
				f.named("report-status-repository"))}
		}
		list[0].Location = f.repository
	}
	kind, api, _ := strings.Cut(f.status, "=")
	if f.hosts, err = hostsOf(kind, api, list); err != nil {
		return f.refuseHost(err)
	}
	return nil
}

// hostsOf returns the git hosts of the sources. It rejects sources on different hosts, because a token is valid for
// only one host.
func hostsOf(kind, api string, list []source) ([]commitHost, error) {
	labels := []string{""}
	if len(list) > 1 {
		labels = sources.Labels(plain(list))
	}
	var hosts []commitHost
	names := map[string]bool{}
	for i, s := range list {
		if !remote.IsAddress(s.Location) {
			continue
		}
		repository, err := remote.ParseAddress(s.Location)
		if err != nil {
			return nil, err
		}
		if api != "" && len(list) > 1 && !serves(api, deliver.Name(repository)) {
			continue
		}
		host, err := deliver.NewHost(kind, api, repository)
		if err != nil {
			return nil, err
		}
		at, err := url.Parse(host.API())
		if err != nil {
			return nil, errors.New("the API URL is invalid")
		}
		if at.Scheme != "https" && !isLoopback(at.Hostname()) {
			return nil, fmt.Errorf("the token would cross the network to %s unencrypted; use an https API URL, "+
				"%s=https://…", at.Host, kind)
		}
		host.Agent = "quorate/" + version()
		names[remote.Host(at)], hosts = true, append(hosts, commitHost{labels[i], host})
	}
	switch {
	case len(hosts) == 0:
		return nil, errors.New("none of the sources is a repository on a supported host; " +
			"for a checkout, set its URL in commitStatus.repository")
	case len(names) > 1:
		return nil, fmt.Errorf("the sources are on several hosts, but the token is valid for only one; set that "+
			"host's API URL: %s=URL", kind)
	}
	return hosts, nil
}

// serves reports whether an API belongs to a host.
func serves(api, host string) bool {
	u, err := url.Parse(api)
	return err == nil && strings.TrimPrefix(strings.ToLower(u.Hostname()), "api.") == host
}
