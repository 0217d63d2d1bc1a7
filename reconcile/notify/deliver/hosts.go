package deliver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/notify"
)

// Host is a git host that stores commit statuses for a repository.
type Host struct {
	// Kind is one of Kinds.
	Kind string
	// api is the API address without a trailing slash. project is the repository's path on the host, split at slashes.
	api     string
	project []string
	// web is the address of the repository's web page. It is used only for Bitbucket.
	web string
	// Agent is the User-Agent header of requests.
	Agent string
}

// Kinds returns the supported kinds of git hosts.
func Kinds() []string { return []string{"github", "gitlab", "gitea", "bitbucket"} }

// cloud is the host name of Bitbucket Cloud. All other Bitbucket hosts run Bitbucket Data Center.
const cloud = "bitbucket.org"

// services maps the git hosts that have a separate API host to their API addresses.
var services = map[string]string{"github.com": "https://api.github.com", cloud: "https://api.bitbucket.org/2.0"}

// Name returns the host name of a repository's git host. Some git hosts have a separate name for SSH over the HTTPS
// port.
func Name(repository *url.URL) string {
	name := strings.ToLower(repository.Hostname())
	return cmp.Or(map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com",
		"altssh.bitbucket.org": cloud, "www.github.com": "github.com"}[name], name)
}

// NewHost returns the git host of a repository. Unless api is set, the API address is derived from the repository.
func NewHost(kind, api string, repository *url.URL) (Host, error) {
	h := Host{Kind: kind}
	if !slices.Contains(Kinds(), kind) {
		return h, fmt.Errorf("must be one of %s", strings.Join(Kinds(), ", "))
	}
	name, scheme, path := Name(repository), "https", strings.Trim(repository.Path, "/")
	root := name
	if repository.Scheme != "ssh" {
		scheme, root = repository.Scheme, cmp.Or(repository.Host, name)
	}
	suffix := map[string]string{"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}[kind]
	h.api = cmp.Or(strings.TrimSuffix(api, "/"), services[name], scheme+"://"+root+suffix)
	// If the git host is served under a path prefix, repository paths include that prefix.
	if at, err := url.Parse(h.api); err == nil && api != "" {
		if prefix := strings.Trim(strings.TrimSuffix(at.Path, suffix), "/"); prefix != "" && name != cloud {
			path = strings.TrimPrefix(path, prefix+"/")
		}
	}
	if kind == "bitbucket" && name != cloud {
		path = strings.TrimPrefix(path, "scm/")
	}
	h.project = strings.Split(strings.TrimSuffix(path, ".git"), "/")
	if len(h.project) < 2 || kind != "gitlab" && len(h.project) != 2 || slices.ContainsFunc(h.project, isNoName) {
		return h, fmt.Errorf("the repository path at %s is not a valid %s path", printable.Line(name), kind)
	}
	h.web = "https://" + cloud + "/" + h.path()
	if name != cloud {
		h.web = h.api + "/projects/" + h.escaped()[0] + "/repos/" + h.escaped()[1]
	}
	return h, nil
}

// isNoName reports whether a path element is not a valid project name.
func isNoName(part string) bool {
	return part == "" || part == "." || part == ".." || !printable.Is(part)
}

// API returns the address to which statuses are sent.
func (h Host) API() string { return h.api }

func (h Host) escaped() []string {
	var list []string
	for _, part := range h.project {
		list = append(list, url.PathEscape(part))
	}
	return list
}

func (h Host) path() string { return strings.Join(h.escaped(), "/") }

// commitStatus is a status as returned by a git host.
type commitStatus struct {
	ID          int64  `json:"id"`
	State       string `json:"state"`
	Status      string `json:"status"`
	Context     string `json:"context"`
	Name        string `json:"name"`
	Key         string `json:"key"`
	Description string `json:"description"`
}

// states maps each kind of git host to its names for the states.
var states = map[string]map[notify.State]string{
	"github":    {notify.Pending: "pending", notify.Success: "success", notify.Failure: "failure"},
	"gitlab":    {notify.Pending: "pending", notify.Success: "success", notify.Failure: "failed"},
	"gitea":     {notify.Pending: "pending", notify.Success: "success", notify.Failure: "failure"},
	"bitbucket": {notify.Pending: "INPROGRESS", notify.Success: "SUCCESSFUL", notify.Failure: "FAILED"},
}

// Report sets the status of a commit under the given name, unless that status is already set.
func (h Host) Report(ctx context.Context, token, commit, name string, s notify.Status) error {
	has, found, err := h.read(ctx, token, commit, name)
	if err != nil {
		return fmt.Errorf("read the status of commit %s: %w", commit, err)
	}
	state := states[h.Kind][s.State]
	same := has.Description == s.Description
	if h.Kind == "gitlab" && s.State == notify.Pending {
		same = true // GitLab rejects a transition from pending to pending
	}
	if found && cmp.Or(has.State, has.Status) == state && same {
		return nil
	}
	if err := h.write(ctx, token, commit, name, state, s.Description); err != nil {
		return fmt.Errorf("write the status of commit %s: %w", commit, err)
	}
	return nil
}

// read returns the status of a commit under the given name.
func (h Host) read(ctx context.Context, token, commit, name string) (has commitStatus, found bool, err error) {
	var where string
	switch {
	case h.Kind == "github":
		where = "/repos/" + h.path() + "/commits/" + commit + "/status?per_page=100"
	case h.Kind == "gitea":
		where = "/repos/" + h.path() + "/commits/" + commit + "/status?limit=50"
	case h.Kind == "gitlab":
		where = "/projects/" + url.PathEscape(strings.Join(h.project, "/")) + "/repository/commits/" + commit +
			"/statuses?per_page=100&name=" + url.QueryEscape(name)
	case h.isCloud():
		where = "/repositories/" + h.path() + "/commit/" + commit + "/statuses/build/" + url.PathEscape(name)
	default:
		where = "/rest/build-status/1.0/commits/" + commit + "?limit=100"
	}
	r := h.request(http.MethodGet, where, token, nil)
	body, err := r.do(ctx, h.Agent)
	if f, is := errors.AsType[*failure](err); is && f.code == http.StatusNotFound && h.isCloud() {
		return commitStatus{}, false, nil
	}
	if err != nil {
		return commitStatus{}, false, err
	}
	list, err := statusesIn(body)
	for _, one := range list {
		if cmp.Or(one.Context, one.Key, one.Name) != name || found && one.ID < has.ID {
			continue
		}
		has, found = one, true
	}
	return has, found, err
}

// statusesIn parses a list, a single status, or an object that contains a list.
func statusesIn(body []byte) ([]commitStatus, error) {
	var list []commitStatus
	if json.Unmarshal(body, &list) == nil {
		return list, nil
	}
	var object struct {
		commitStatus
		Statuses []commitStatus `json:"statuses"`
		Values   []commitStatus `json:"values"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, errors.New("the response is not the expected JSON; check the API address")
	}
	return append(append(object.Statuses, object.Values...), object.commitStatus), nil
}

func (h Host) write(ctx context.Context, token, commit, name, state, description string) error {
	var where string
	fields := map[string]string{"state": state, "description": description}
	switch {
	case h.Kind == "gitlab":
		where = "/projects/" + url.PathEscape(strings.Join(h.project, "/")) + "/statuses/" + commit
		fields["name"] = name
	case h.Kind != "bitbucket":
		where = "/repos/" + h.path() + "/statuses/" + commit
		fields["context"] = name
	default:
		where = "/rest/build-status/1.0/commits/" + commit
		if h.isCloud() {
			where = "/repositories/" + h.path() + "/commit/" + commit + "/statuses/build"
		}
		fields["key"], fields["name"], fields["url"] = name, name, h.web+"/commits/"+commit
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = h.request(http.MethodPost, where, token, body).do(ctx, h.Agent)
	return err
}

// isCloud reports whether the host is Bitbucket Cloud.
func (h Host) isCloud() bool {
	return h.Kind == "bitbucket" && strings.HasPrefix(h.web, "https://"+cloud+"/")
}

func (h Host) request(method, where, token string, body []byte) request {
	r := request{method: method, url: h.api + where, body: body, header: http.Header{}, secrets: []string{token}}
	r.header.Set("Accept", "application/json")
	if body != nil {
		r.header.Set("Content-Type", "application/json")
	}
	authorization := "Bearer " + token
	switch {
	case h.Kind == "github":
		r.header.Set("Accept", "application/vnd.github+json")
		r.header.Set("X-GitHub-Api-Version", "2022-11-28")
	case h.Kind == "gitea":
		authorization = "token " + token
	case h.isCloud() && strings.Contains(token, ":"): // USER:TOKEN
		encoded := base64.StdEncoding.EncodeToString([]byte(token))
		user, password, _ := strings.Cut(token, ":")
		r.secrets = append(r.secrets, encoded, user, password)
		authorization = "Basic " + encoded
	}
	if h.Kind == "gitlab" {
		r.header.Set("Private-Token", token)
		return r
	}
	r.header.Set("Authorization", authorization)
	return r
}
