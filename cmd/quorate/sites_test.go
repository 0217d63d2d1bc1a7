package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"quorate.dev/quorate/clusters/fleet"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// codes lists all exit codes of a report, with the most serious first.
var codes = []int{exitError, exitInvalid, exitBlocked, exitLocked, exitNotConverged, exitChanges, exitOK}

// TestExitCodeIsMostSeriousOfKubernetesClusters checks that the exit code of a run is the most serious exit code of its
// Kubernetes clusters.
func TestExitCodeIsMostSeriousOfKubernetesClusters(t *testing.T) {
	random, met := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	one := func(err error) int {
		code := exit(exitOK)
		_ = errors.As(err, &code) // if err is nil, code remains exitOK
		return int(code)
	}
	for range 5000 {
		f := &runFlags{detailed: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			f.failOn = riskFlag{forecast.DeletesData}
		}
		worst, converged := len(codes)-1, true
		var parts []report.Part
		for i := range 1 + random.IntN(3) {
			var r report.Report
			verdicts := []decide.Verdict{decide.Done, decide.Done, decide.Act, decide.Wait, decide.Block}
			for n := range random.IntN(3) {
				c := report.Cluster{Namespace: "shop", Name: fmt.Sprint(n), Decision: decide.Decision{Rule: "R", Verdict: verdicts[random.IntN(len(verdicts))]}}
				switch random.IntN(12) {
				case 0:
					c.Error = "down"
				case 1:
					c.Decision = decide.Decision{Rule: decide.LockedElsewhere, Verdict: decide.Wait}
				case 2:
					c.Road = &forecast.Forecast{Steps: []forecast.Step{{Action: decide.DeleteVolume{}}}}
				}
				r.Clusters = append(r.Clusters, c)
			}
			if random.IntN(8) == 0 {
				r.Problems = []report.Problem{{Message: "wrong"}}
			}
			done := random.IntN(6) > 0
			worst, converged = min(worst, slices.Index(codes, one(f.code(r, done)))), converged && done
			parts = append(parts, report.Part{Kubernetes: fmt.Sprint(i), Report: r})
		}
		got := one(f.code(report.Join(parts), converged))
		if met[got] = true; got != codes[worst] {
			t.Errorf("it is %d, and the worst of the parts is %d: %+v", got, codes[worst], parts)
		}
	}
	if len(met) != len(codes) {
		t.Errorf("these were met: %v", met)
	}
}

// founds declares a cluster in namespace shop. The cluster does not get any pods.
func founds(name string) string {
	return fmt.Sprintf("apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: %s, namespace: shop}\n"+
		"spec: {version: 3.6.16, replicas: 1, tls: {mode: Disabled}}\n", name)
}

// twice starts two Kubernetes clusters, and returns them with a kubeconfig that has the contexts eu, us, silent and
// eu-again. The server of the context silent accepts connections but does not respond.
func twice(t *testing.T) (eu, us *tenants, kubeconfig string) {
	t.Helper()
	eu, us = newTenants(t, "shop"), newTenants(t, "shop", "fleet")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // the test is over
	at, err := url.Parse(eu.server.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	again := fmt.Sprintf("https://[::ffff:%s]:%s", at.Hostname(), at.Port()) // the same address in a different notation
	contexts, clusters := "", ""
	for name, host := range map[string]string{"eu": eu.server.Config.Host, "us": us.server.Config.Host, "silent": "https://" + silent.Addr().String(),
		"eu-again": again} {
		contexts += fmt.Sprintf("{name: %[1]s, context: {cluster: %[1]s, user: u}}, ", name)
		clusters += fmt.Sprintf("{name: %s, cluster: {server: %q, insecure-skip-tls-verify: true}}, ", name, host)
	}
	eu.write("both", fmt.Sprintf("{apiVersion: v1, kind: Config, contexts: [%s], clusters: [%s], users: [{name: u, user: {token: %s}}]}",
		contexts, clusters, eu.server.Config.BearerToken))
	return eu, us, filepath.Join(eu.dir, "both")
}

// TestRunCoversSeveralKubernetesClusters checks that a run can cover two Kubernetes clusters, with one report and one
// exit code, and that an unresponsive Kubernetes cluster does not delay the others.
func TestRunCoversSeveralKubernetesClusters(t *testing.T) {
	eu, us, kubeconfig := twice(t)
	eu.push("own", founds("a"))
	on := func(command string, contexts ...string) ran {
		args := []string{command, "--kubeconfig", kubeconfig}
		if command != "status" {
			args = append(args, "--source", eu.repository("own"), "--timeout", "4s")
		}
		for _, name := range contexts {
			args = append(args, "--context", name)
		}
		return eu.bare(args...)
	}
	plan := on("plan", "eu", "us")
	for _, want := range []string{"\neu shop/a  Act ", "\nus shop/a  Act ", "\n2 clusters, 2 to act on"} {
		if plan.code != exitOK || !strings.Contains(plan.out, want) || strings.Count(plan.out, "revision ") != 1 {
			t.Fatalf("no %q: %+v", want, plan)
		}
	}
	if eu.cluster("shop/a") != nil || us.cluster("shop/a") != nil {
		t.Error("a plan has created something")
	}
	for command, same := range map[string][]string{"run": {"us", "eu-again", "silent", "eu"}, "plan": {"eu", "eu-again"}, "status": {"eu-again", "eu"}} {
		if got := on(command, same...); got.code != exitInvalid || !strings.Contains(got.err, "are the same Kubernetes cluster") {
			t.Errorf("%s %q: %+v", command, same, got)
		}
	}
	if eu.cluster("shop/a") != nil || us.cluster("shop/a") != nil {
		t.Error("a refused run has created something")
	}
	got := on("run", "silent", "eu", "us")
	if got.code != exitError || !strings.Contains(got.out, "\nerror silent: ") || !strings.Contains(got.out, "\neu shop/a ") {
		t.Errorf("%+v", got)
	}
	acted, failed := strings.Index(got.err, "msg=acted kubernetes=us"), strings.Index(got.err, "kubernetes=silent")
	if eu.cluster("shop/a") == nil || us.cluster("shop/a") == nil || acted < 0 || failed < acted {
		t.Errorf("an unresponsive cluster has delayed others: %+v", got)
	}
	got = on("status", "eu", "silent", "us")
	if got.code != exitError || !strings.Contains(got.out, "KUBERNETES  NAMESPACE/NAME") || !strings.Contains(got.out, "\nus          shop/a ") ||
		!strings.Contains(got.err, "quorate: silent: ") {
		t.Errorf("%+v", got)
	}
	if got := on("status", "us"); got.code != exitOK || strings.Contains(got.out, "KUBERNETES") || !strings.Contains(got.out, "\nshop/a ") {
		t.Errorf("of one: %+v", got)
	}
	metrics := filepath.Join(eu.dir, "quorate.prom")
	if got := eu.bare("run", "--kubeconfig", kubeconfig, "--context", "eu", "--context", "us", "--source", eu.repository("own"), "--timeout", "8s", "metrics.file="+metrics); got.code != exitNotConverged {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(metrics)
	for _, name := range []string{"eu", "us"} {
		if want := fmt.Sprintf(`quorate_cluster_observed{kubernetes=%q,name="a",namespace="shop"} 1`, name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: no %s in\n%s", err, want, text)
		}
	}
}

// TestFleetFileSelectsPathPerCluster checks that a fleet file determines the Kubernetes clusters, and which part of the
// repository each of them uses.
func TestFleetFileSelectsPathPerCluster(t *testing.T) {
	eu, us, _ := twice(t)
	eu.push("own", founds("other"))
	for _, name := range []string{"eu", "us"} {
		eu.write("private-to-own/clusters/"+name+"/a.yaml", founds("only-"+name))
	}
	eu.git("own", "add", "--all", ".")
	eu.git("own", "commit", "--quiet", "-m", "x")
	content, err := os.ReadFile(eu.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "eu-kubeconfig"}, Data: map[string][]byte{"value": content}}
	if _, err := us.server.Client.CoreV1().Secrets("fleet").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	us.write("fleet.yaml", "clusters:\n- {name: eu, secret: fleet/eu-kubeconfig, path: clusters/eu}\n- {name: us, kubeconfig: kubeconfig, path: clusters/us}\n"+
		"- {name: gone, secret: fleet/none, path: clusters/eu}\n")
	fleet := []string{"--fleet", filepath.Join(us.dir, "fleet.yaml"), "--source", eu.repository("own"), "--timeout", "10s"}
	got := us.run(fleet...)
	if got.code != exitError || !strings.Contains(got.out, "\nerror gone: read the kubeconfig in Secret fleet/none: ") {
		t.Errorf("%+v", got)
	}
	for w, name := range map[*tenants]string{eu: "eu", us: "us"} {
		for _, other := range []string{"eu", "us"} {
			if there := w.cluster("shop/only-"+other) != nil; there != (other == name) {
				t.Errorf("only-%s in %s: %t; %+v", other, name, there, got)
			}
		}
	}
	for want, args := range map[string][]string{
		"--source cluster does not read a git": {"--source", "cluster"},
		"has its own":                          {"--source", eu.repository("own") + ",path=declared"},
	} {
		if got := us.run(append(args, "--fleet", filepath.Join(us.dir, "fleet.yaml"))...); got.code != exitInvalid || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestPlanIsApprovedForAllKubernetesClusters checks that a plan is approved for all Kubernetes clusters together, and
// that nothing is changed in any of them without the approval.
func TestPlanIsApprovedForAllKubernetesClusters(t *testing.T) {
	eu, us, kubeconfig := twice(t)
	eu.push("own", founds("a"))
	on := func(args ...string) ran {
		return eu.bare(append(args, "--kubeconfig", kubeconfig, "--source", eu.repository("own"), "--timeout", "12s")...)
	}
	digest := func(got ran) string {
		_, after, _ := strings.Cut(got.out, "\nplan ")
		digest, _, _ := strings.Cut(after, "\n")
		return digest
	}
	both, one := digest(on("plan", "--context", "eu", "--context", "us")), digest(on("plan", "--context", "eu"))
	if both == "" || one == "" || both == one {
		t.Fatalf("%q, %q", both, one)
	}
	run := func(digest string) ran {
		return on("run", "--until-converged", "--context", "eu", "--context", "us", "--approve", "plan="+digest)
	}
	if got := run(one); got.code != exitBlocked || eu.cluster("shop/a") != nil || us.cluster("shop/a") != nil {
		t.Errorf("a plan of one cluster: %+v", got)
	}
	if got := run(both); got.code != exitNotConverged || eu.cluster("shop/a") == nil || us.cluster("shop/a") == nil {
		t.Errorf("%+v", got)
	}
}

// TestLateDuplicateClusterIDIsExcluded checks that a Kubernetes cluster that is identified late is excluded if it is
// the same as another Kubernetes cluster of the run. At that point, the others no longer wait for it.
func TestLateDuplicateClusterIDIsExcluded(t *testing.T) {
	answering := func(wait time.Duration) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"same"}}`)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}], "+
		"clusters: [{name: a, cluster: {server: %q}}, {name: b, cluster: {server: %q}}]}", answering(0), answering(fleet.IdentifyWait+time.Second)), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &liveFlags{kubeFlags: kubeFlags{kubeconfig: file, places: &targetFlags{contexts: []string{"a", "b"}}, impersonates: func() bool { return false },
		errors: func() io.Writer { return io.Discard }}}
	places, err := f.places.places()
	if err != nil {
		t.Fatal(err)
	}
	meeting, err := f.register(t.Context(), places)
	if err != nil {
		t.Fatal(err)
	}
	first, late := meeting.Ready(t.Context(), 0), meeting.Ready(t.Context(), 1)
	if first != nil || late == nil || !strings.Contains(late.Error(), "the same Kubernetes cluster as a") {
		t.Errorf("%v, %v", first, late)
	}
}

// TestKubernetesClustersUseDistinctLeaseHolders checks that each part of a run uses a different lease holder name, in
// case two parts act on the same Kubernetes cluster without knowing it.
func TestKubernetesClustersUseDistinctLeaseHolders(t *testing.T) {
	eu, us, kubeconfig := twice(t)
	eu.push("own", founds("a"))
	holders := map[string]bool{}
	var seen []watch.Interface
	for _, w := range []*tenants{eu, us} {
		leases, err := w.server.Client.CoordinationV1().Leases("shop").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer leases.Stop()
		seen = append(seen, leases)
	}
	got := eu.bare("run", "--kubeconfig", kubeconfig, "--context", "eu", "--context", "us", "--source", eu.repository("own"), "--timeout", "10s")
	if eu.cluster("shop/a") == nil || us.cluster("shop/a") == nil {
		t.Fatalf("%+v", got)
	}
	for _, leases := range seen {
		for event := range leases.ResultChan() { // until the lease is released
			lease, is := event.Object.(*coordinationv1.Lease)
			if !is || *lease.Spec.HolderIdentity == "" {
				break
			}
			if event.Type == watch.Added {
				holders[*lease.Spec.HolderIdentity] = true
			}
		}
	}
	if len(holders) != 2 {
		t.Errorf("two leases are held by %v", holders)
	}
}

// TestLateDuplicateAddressIsExcluded checks that a Kubernetes cluster whose kubeconfig arrives late, and that cannot be
// identified, is excluded if it has the same address as another Kubernetes cluster.
func TestLateDuplicateAddressIsExcluded(t *testing.T) {
	var hub *httptest.Server
	var given atomic.Bool
	hub = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/secrets/late"):
			select {
			case <-time.After(fleet.IdentifyWait + time.Second):
			case <-r.Context().Done():
			}
			kubeconfig := fmt.Sprintf("{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
				"clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}", hub.URL)
			text, err := json.Marshal(corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"value": []byte(kubeconfig)}})
			if err != nil {
				t.Error(err)
			}
			given.Store(true)
			_, _ = w.Write(text)
		case given.Load():
			w.WriteHeader(http.StatusForbidden)
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"hub"}}`)
		}
	}))
	t.Cleanup(hub.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], "+
		"clusters: [{name: a, cluster: {server: %q}}]}", hub.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &liveFlags{kubeFlags: kubeFlags{kubeconfig: file, places: &targetFlags{fleet: "x"}, impersonates: func() bool { return false },
		errors: func() io.Writer { return io.Discard }}}
	meeting, err := f.register(t.Context(), []kubeTarget{{Name: "hub", Kubeconfig: file}, {Name: "late", Secret: "fleet/late"}})
	if err != nil {
		t.Fatal(err)
	}
	first, late := meeting.Ready(t.Context(), 0), meeting.Ready(t.Context(), 1)
	if first != nil || late == nil || !strings.Contains(late.Error(), "the same Kubernetes cluster as hub") {
		t.Errorf("%v, %v", first, late)
	}
}

// TestHangingCredentialPluginIsNotAwaited checks that a credential plugin that never exits affects only its own
// Kubernetes cluster.
func TestHangingCredentialPluginIsNotAwaited(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("sleep is not installed")
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: Config, contexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "+
		"command: sleep, args: ['8'], interactiveMode: Never}}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &liveFlags{kubeFlags: kubeFlags{kubeconfig: file, allowExec: true, places: &targetFlags{contexts: []string{"a"}, fleet: "x"},
		impersonates: func() bool { return false }, errors: func() io.Writer { return io.Discard }}}
	meeting, err := f.register(t.Context(), []kubeTarget{{Name: "a", Context: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := meeting.Ready(ctx, 0); err == nil {
		t.Error("it has waited until the program has ended")
	}
}

// TestContextSwitchDoesNotChangeIdentifiedCluster checks that a run acts on the Kubernetes cluster that it has
// identified, even if the kubeconfig changes after that, for example through kubectl config use-context.
func TestContextSwitchDoesNotChangeIdentifiedCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	use := func(context, eu, us string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: %s, "+
			"contexts: [{name: eu, context: {cluster: eu}}, {name: us, context: {cluster: us}}], "+
			"clusters: [{name: eu, cluster: {server: %q}}, {name: us, cluster: {server: %q}}]}", context, eu, us), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(uid string) string {
		served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, uid)
		}))
		t.Cleanup(served.Close)
		return served.URL
	}
	eu, us := serve("eu"), serve("us")
	use("eu", eu, us)
	f := &liveFlags{kubeFlags: kubeFlags{places: &targetFlags{fleet: "x"}, impersonates: func() bool { return false },
		errors: func() io.Writer { return io.Discard }}}
	meeting, err := f.register(t.Context(), []kubeTarget{{Name: "eu", Kubeconfig: file}, {Name: "us", Kubeconfig: file, Context: "us"}})
	if err != nil {
		t.Fatal(err)
	}
	use("us", eu, us)
	for i, want := range []string{"eu", "us"} {
		if err := meeting.Ready(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		client, err := meeting.flags[i].client()
		if err != nil {
			t.Fatal(err)
		}
		if id, err := client.ClusterID(t.Context()); err != nil || id != want {
			t.Errorf("%s acts on %s, %v", want, id, err)
		}
	}
}

// TestDuplicateSourceByFleetPathIsRejected checks that sources that become identical because of a path in the fleet
// file are rejected, as they are on a command line. Otherwise, one of them would be read with the settings of the
// other.
func TestDuplicateSourceByFleetPathIsRejected(t *testing.T) {
	dir := t.TempDir()
	f := &sourceFlags{values: []string{dir, dir + ",path=a,allow-namespace=shop"}, settings: newSource(budgetWithin(0).limits)}
	if _, err := f.checkEach(f.checkOne); err != nil {
		t.Fatal(err)
	}
	if _, err := f.at(kubeTarget{Name: "eu", Path: "a"}); err == nil || !strings.Contains(err.Error(), "specified twice") {
		t.Errorf("%v", err)
	}
	f.values = f.values[1:]
	if _, err := f.at(kubeTarget{Name: "eu", Path: "a"}); err != nil {
		t.Error(err)
	}
}

// TestDuplicateClusterIDFromSecretIsExcluded checks that, if the server of a kubeconfig in a Secret claims to be a
// different Kubernetes cluster of the run, only the impostor is excluded, regardless of the order of the two.
func TestDuplicateClusterIDFromSecretIsExcluded(t *testing.T) {
	answering := func(id string) *httptest.Server {
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !strings.Contains(r.URL.Path, "/secrets/") {
				fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, id)
				return
			}
			host := server.URL // by its address
			if path.Base(r.URL.Path) == "by-id" {
				host = "http://" + r.Host + "/by-id"
			}
			kubeconfig := fmt.Sprintf("{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
				"clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}", host)
			text, err := json.Marshal(corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"value": []byte(kubeconfig)}})
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(text)
		}))
		t.Cleanup(server.Close)
		return server
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], "+
		"clusters: [{name: a, cluster: {server: %q}}]}", answering("hub").URL), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := kubeTarget{Name: "hub", Kubeconfig: file}
	for _, secret := range []string{"fleet/by-address", "fleet/by-id"} {
		pretender := kubeTarget{Name: "pretender", Secret: secret}
		for _, list := range [][]kubeTarget{{hub, pretender}, {pretender, hub}} {
			f := &liveFlags{kubeFlags: kubeFlags{kubeconfig: file, places: &targetFlags{fleet: "x"}, impersonates: func() bool { return false },
				errors: func() io.Writer { return io.Discard }}}
			meeting, err := f.register(t.Context(), list)
			if err != nil {
				t.Errorf("%v: %v", list, err)
				continue
			}
			for i, one := range list {
				err := meeting.Ready(t.Context(), i)
				if pretends := one.Name == "pretender"; pretends != (err != nil) || pretends && !strings.Contains(err.Error(), "the same Kubernetes cluster as hub") {
					t.Errorf("%v: %s: %v", list, one.Name, err)
				}
			}
		}
	}
}
