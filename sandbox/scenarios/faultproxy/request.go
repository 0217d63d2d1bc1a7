package faultproxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Request is a request that the proxy has received, and its result.
type Request struct {
	// Index is the number of the request in order of arrival, starting at 1.
	Index int
	// Write is the number of the request among those that write, in order of arrival, starting at 1. It is zero if the
	// request only reads.
	Write int
	// Verb is the Kubernetes verb: get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the plural name with any subresource, such as "pods/portforward". It is empty for paths such as
	// /version.
	Resource  string
	Namespace string
	Name      string
	// Path is the path with the query, as the client sent it.
	Path string
	// Status is the API server's status code, or zero if the API server has not responded.
	Status int
}

// String returns a one-line description of the request and its result.
func (r Request) String() string {
	write := ""
	if r.Write > 0 {
		write = fmt.Sprintf(" write %d", r.Write)
	}
	return fmt.Sprintf("%3d%s %s %s -> %d", r.Index, write, r.Verb, r.Path, r.Status)
}

// parse interprets the path of r according to the conventions of the Kubernetes API.
func parse(r *http.Request) Request {
	request := Request{Path: r.URL.RequestURI()}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		request.Verb = strings.ToLower(r.Method)
		return request
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	request.Resource = parts[0]
	if len(parts) > 1 {
		request.Name = parts[1]
	}
	if len(parts) > 2 {
		request.Resource += "/" + parts[2]
	}
	request.Verb = verb(r, request.Name != "")
	if request.mutates(group) && r.URL.Query().Get("dryRun") == "" {
		request.Write = 1
	}
	return request
}

func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}

// mutates reports whether the request writes. Connections to pods and access reviews are POST requests, but do not
// write.
func (r Request) mutates(group string) bool {
	if !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) {
		return false
	}
	if group == "authentication.k8s.io" || group == "authorization.k8s.io" {
		return false
	}
	_, subresource, _ := strings.Cut(r.Resource, "/")
	return !slices.Contains([]string{"portforward", "exec", "attach", "proxy"}, subresource)
}
