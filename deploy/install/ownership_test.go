package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/deploy"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

// apiServer is a fake of the part of an API server that an installation uses. It stores objects by path and runs
// nothing.
type apiServer struct {
	objects map[string]json.RawMessage
	// forbidden is a resource that the client is not allowed to list.
	forbidden string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	object, found := s.objects[r.URL.Path]
	plural := path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodPatch:
		text, _ := io.ReadAll(r.Body)
		applied, err := yaml.YAMLToJSON(text)
		if err != nil {
			panic(err)
		}
		if strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
			applied = []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Established","status":"True"}]}}`)
		}
		s.objects[r.URL.Path] = applied
		_, _ = w.Write(applied)
	case found && r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case found:
		_, _ = w.Write(object)
	case r.Method == http.MethodGet && plural == s.forbidden:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s is forbidden","reason":"Forbidden","code":403}`, plural)
	case r.Method == http.MethodGet && slices.Contains([]string{"configmaps", "pods", "rolebindings", "clusterrolebindings"}, plural):
		var items []json.RawMessage
		for _, p := range slices.Sorted(maps.Keys(s.objects)) {
			if path.Base(path.Dir(p)) == plural && (plural != "configmaps" || path.Dir(p) == r.URL.Path) {
				items = append(items, s.objects[p])
			}
		}
		kind := map[string]string{"rolebindings": "RoleBinding", "clusterrolebindings": "ClusterRoleBinding", "configmaps": "ConfigMap", "pods": "Pod"}[plural]
		list := map[string]any{"kind": kind + "List", "apiVersion": "v1", "items": items}
		if strings.HasPrefix(r.URL.Path, rbacPath) {
			list["apiVersion"] = rbacv1.SchemeGroupVersion.String()
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// binding returns a binding of the ClusterRole "quorate" as JSON. It is named "quorate" too, and is a RoleBinding if
// namespace is set, or else a ClusterRoleBinding.
func binding(namespace string, subjects ...rbacv1.Subject) json.RawMessage {
	kind, metadata := "ClusterRoleBinding", map[string]any{"name": "quorate"}
	if namespace != "" {
		kind, metadata["namespace"] = "RoleBinding", namespace
	}
	text, err := json.Marshal(map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata,
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "quorate"},
		"subjects": subjects})
	if err != nil {
		panic(err)
	}
	return text
}

// TestRightsOfOthersAreKept checks that a role or binding that something else uses, or may use, is neither changed nor
// deleted, so that other installations do not lose rights.
func TestRightsOfOthersAreKept(t *testing.T) {
	ours := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "quorate", Namespace: deploy.Namespace}
	other := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "quorate", Namespace: "etcd-ops"}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	const role, own, inShop = rbacPath + "clusterroles/quorate", rbacPath + "clusterrolebindings/quorate", rbacPath + "namespaces/shop/rolebindings/quorate"
	for name, test := range map[string]struct {
		path      string
		object    json.RawMessage
		forbidden string
		// kept is the reason why the role is kept, or empty.
		kept string
	}{
		"no other use":                      {path: inShop, object: binding("shop", ours)},
		"another installation in shop":      {path: inShop, object: binding("shop", other), kept: "it is used by RoleBinding shop/quorate (ServiceAccount etcd-ops/quorate)"},
		"users in shop":                     {path: inShop, object: binding("shop", user("a"), user("b"), user("c"), user("d"), user("e")), kept: "it is used by RoleBinding shop/quorate (User a, User b, User c, 2 more)"},
		"another installation, shared":      {path: own, object: binding("", ours, other), kept: "it is used by ClusterRoleBinding quorate (ServiceAccount etcd-ops/quorate)"},
		"a user, shared":                    {path: own, object: binding("", ours, user("ann")), kept: "it is used by ClusterRoleBinding quorate (User ann)"},
		"a user with control characters":    {path: inShop, object: binding("shop", user("ann\x1b[2J\nClusterRole quorate")), kept: `it is used by RoleBinding shop/quorate (User ann\x1b[2J ClusterRole quorate)`},
		"role bindings are hidden":          {forbidden: "rolebindings", kept: "it is unknown what uses it: list RoleBindings: rolebindings is forbidden"},
		"cluster role bindings are hidden":  {forbidden: "clusterrolebindings", kept: "it is unknown what uses it: list ClusterRoleBindings: clusterrolebindings is forbidden"},
		"a binding of a different role":     {path: inShop, object: bytes.Replace(binding("shop", other), []byte(`"kind":"ClusterRole"`), []byte(`"kind":"Role"`), 1)},
		"a binding without subjects":        {path: inShop, object: binding("shop")},
		"an account of the same namespace":  {path: inShop, object: binding("shop", rbacv1.Subject{Kind: "ServiceAccount", Name: "ci", Namespace: deploy.Namespace}), kept: "it is used by RoleBinding shop/quorate (ServiceAccount quorate-system/ci)"},
		"a binding that belongs to Helm":    {path: inShop, object: bytes.Replace(binding("shop", ours), []byte(`"name":"quorate"`), []byte(`"name":"quorate","annotations":{"meta.helm.sh/release-name":"r","meta.helm.sh/release-namespace":"n"}`), 1), kept: `it is used by RoleBinding shop/quorate (owned by Helm release "r" in namespace "n")`},
		"a group that contains the account": {path: inShop, object: binding("shop", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"}), kept: "it is used by RoleBinding shop/quorate (Group system:serviceaccounts)"},
	} {
		t.Run(name, func(t *testing.T) {
			texts, err := deploy.Render(deploy.Options{Mode: deploy.Loop, Image: "quorate:1"})
			if err != nil {
				t.Fatal(err)
			}
			server := &apiServer{objects: map[string]json.RawMessage{}}
			client, err := kube.New(kubetest.Answering(t, server.ServeHTTP))
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			installer := Installer{Client: client, Out: &out, Err: &errs}
			if err := installer.Install(t.Context(), texts); err != nil || errs.Len() > 0 {
				t.Fatalf("%v: %s", err, &errs)
			}
			if server.forbidden = test.forbidden; test.path != "" {
				server.objects[test.path] = test.object
			}
			bound := server.objects[own]

			if err := installer.Install(t.Context(), texts); err != nil || strings.Contains(errs.String(), "ClusterRole quorate is kept unchanged: "+test.kept) != (test.kept != "") {
				t.Errorf("install with the same rights: %v\n%s", err, &errs)
			}
			changed := json.RawMessage(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"quorate"},"rules":[]}`)
			server.objects[role] = changed
			out.Reset()
			if err := installer.Install(t.Context(), texts); (err != nil) != (test.kept != "") || err != nil && (out.Len() > 0 || !strings.Contains(err.Error(), "ClusterRole quorate would be changed, but "+test.kept)) {
				t.Errorf("install with different rights: %v\n%s", err, &out)
			}

			out.Reset()
			errs.Reset()
			if err := installer.PrintInstalled(t.Context()); err != nil {
				t.Fatal(err)
			}
			printed := out.String()
			out.Reset()
			errs.Reset()
			if err := installer.Uninstall(t.Context()); err != nil {
				t.Fatal(err)
			}
			if strings.ReplaceAll(out.String(), "deleted ", "") != printed {
				t.Errorf("it announced\n%s\nand wrote\n%s", printed, &out)
			}
			if want := "ClusterRole quorate is kept: " + test.kept; strings.Contains(errs.String(), want) != (test.kept != "") || test.kept != "" && !strings.Contains(errs.String(), "once nothing uses it, run kubectl delete clusterrole quorate\n") {
				t.Errorf("want %q of\n%s", want, &errs)
			}
			if got := string(server.objects[role]); test.kept != "" && got != string(changed) || test.kept == "" && got != "" {
				t.Errorf("the role is %s", got)
			}
			shared := test.path == own
			if got := string(server.objects[own]); shared && got != string(bound) || !shared && got != "" {
				t.Errorf("the binding was %s and is %s", bound, got)
			}
			if shared && !strings.Contains(errs.String(), "to remove the subject ServiceAccount quorate-system/quorate, run kubectl edit clusterrolebinding quorate\n") {
				t.Errorf("got\n%s", &errs)
			}
		})
	}
}
