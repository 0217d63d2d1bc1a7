package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// completed returns the completions that a shell gets for the given words. The last word is incomplete.
func completed(t *testing.T, words ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	if code := execute(t.Context(), append([]string{"__complete"}, words...), streams{out: &out, err: &stderr}); code != exitOK {
		t.Errorf("%q: exit code %d", words, code)
	}
	if said := stderr.String(); strings.Count(said, "\n") > 1 || !strings.HasPrefix(said, "Completion ended with directive: ShellCompDirectiveNoFileComp") {
		t.Errorf("%q: got %q", words, said)
	}
	return strings.Join(strings.Fields(strings.TrimSuffix(out.String(), ":4\n")), " ")
}

// TestCompletion checks that shells complete clusters and namespaces, and that no other text from an API server reaches
// them.
func TestCompletion(t *testing.T) {
	const items = `{"metadata": {"namespace": "prod", "name": "b"}}, {"metadata": {"namespace": "prod", "name": "a"}}, {"metadata": {"namespace": "shop", "name": "a"}}`
	const hostile = `{"metadata": {"namespace": "prod", "name": "a\u001b[31m"}}, {"metadata": {"namespace": "prod", "name": "x\ty"}}, {"metadata": {"namespace": "-n;ls", "name": "c"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 - "said by the API server"`)
		w.Header().Set("Content-Type", "application/json")
		list := items + ", " + hostile
		if strings.Contains(r.URL.Path, "/namespaces/shop/") {
			list = `{"metadata": {"namespace": "shop", "name": "a"}}`
		}
		fmt.Fprintf(w, `{"kind": "EtcdClusterList", "apiVersion": "etcd.quorate.dev/v1alpha1", "metadata": {}, "items": [%s]}`, list)
	}))
	defer server.Close()
	kubeconfig := kubeconfigOf(t, server)
	t.Setenv("KUBECONFIG", kubeconfig) // for commands without a --kubeconfig flag
	for words, want := range map[string]string{
		"status|":               "prod/a prod/b shop/a",
		"status|prod/":          "prod/a prod/b",
		"status|-n|shop|":       "a",
		"status|prod/a|":        "",
		"status|-n|":            "prod shop",
		"status|-n|s":           "shop",
		"explain|p":             "prod/a prod/b",
		"backup|s":              "shop/a",
		"backups|list|s":        "shop/a",
		"backups|fetch|prod/b":  "prod/b",
		"plan|--namespace|p":    "prod",
		"status|--sort-by|":     "age name size state",
		"status|--verdict|":     "Act Block Done Unknown Wait",
		"status|--output|":      "json name text wide yaml",
		"status|nothing/there|": "",
	} {
		got := strings.Fields(completed(t, strings.Split(words, "|")...))
		if want := strings.Fields(want); !sameWords(got, want) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

func sameWords(got, want []string) bool {
	count := map[string]int{}
	for _, word := range got {
		count[word]++
	}
	for _, word := range want {
		count[word]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestCompletionIsEmptyWithoutAPIServer checks that completion suggests and prints nothing if the API server is
// unreachable or too slow.
func TestCompletionIsEmptyWithoutAPIServer(t *testing.T) {
	done := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	defer close(done)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	for _, kubeconfig := range []string{"/nowhere", kubeconfigOf(t, refusing), kubeconfigOf(t, hanging)} {
		began := time.Now()
		if got := completed(t, "status", "--kubeconfig", kubeconfig, ""); got != "" {
			t.Errorf("%s: %q", kubeconfig, got)
		}
		if took := time.Since(began); took > 4*timeToSuggest {
			t.Errorf("%s: it took %s", kubeconfig, took)
		}
	}
}
