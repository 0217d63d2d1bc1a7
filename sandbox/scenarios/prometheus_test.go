package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// prometheusPorts is the first port on which Prometheus servers listen. It is neither an ephemeral port nor used by
// Services.
const prometheusPorts = 21_000

// prometheus is a real Prometheus in the sandbox's network. Every second, it scrapes the targets of the PodMonitors in
// deploy/monitoring and evaluates the rules in its PrometheusRule.
type prometheus struct {
	w       *world
	address string
	client  http.Client
}

// startPrometheus starts Prometheus and stops it at the end of the test.
func (w *world) startPrometheus(m monitoring) *prometheus {
	w.t.Helper()
	dir := w.t.TempDir()
	inside, err := exec.Command(binary("sandbox"), "kubeconfig", "--inside", "--name", w.name).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	write := func(name string, what any) string {
		text, err := yaml.Marshal(what)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	config := write("prometheus.yaml", map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{write("rules.yaml", m.rulesWithin("2s"))},
		"scrape_configs": m.scrapes(strings.TrimSpace(string(inside)), w.namespace),
	})
	p := &prometheus{w: w, address: net.JoinHostPort(w.inside(), strconv.Itoa(prometheusPorts+mathrand.IntN(1000)))}
	p.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return w.dialInside(ctx, address)
	}}
	server := exec.Command(binary("sandbox"), "exec", "--name", w.name, "--", "sh", "-c", `"$0" "$@" & cat; kill $!; wait`, binary("prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address, "--log.level=warn")
	server.Stderr = os.Stderr
	stop, err := server.StdinPipe() // when stdin is closed, Prometheus exits, even if the test is killed
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = stop.Close()
		_ = server.Wait()
	})
	eventually(w.t, "Prometheus answers", func() error { _, err := p.query("vector(1)"); return err })
	return p
}

// get queries the Prometheus API.
func (p *prometheus) get(what string, parameters url.Values, into any) error {
	answer, err := p.client.Get("http://" + p.address + "/api/v1/" + what + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Error string
		Data  json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("%s: %s: %w", what, answer.Status, err)
	}
	if envelope.Error != "" {
		return fmt.Errorf("%s: %s", what, envelope.Error)
	}
	return json.Unmarshal(envelope.Data, into)
}

// query returns the number of series that an expression currently selects.
func (p *prometheus) query(expr string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := p.get("query", url.Values{"query": {expr}}, &data)
	return len(data.Result), err
}

// selectors returns the selectors in an expression, as parsed by Prometheus.
func (p *prometheus) selectors(expr string) ([]string, error) {
	var tree any
	if err := p.get("parse_query", url.Values{"query": {expr}}, &tree); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	var found []string
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			if node["type"] == "vectorSelector" || node["type"] == "matrixSelector" {
				found = append(found, selector(node))
			}
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(tree)
	slices.Sort(found)
	return slices.Compact(found), nil
}

// selector formats the selector at a node of a parse tree, without its range.
func selector(node map[string]any) string {
	var matchers []string
	list, _ := node["matchers"].([]any)
	for _, entry := range list {
		if m, _ := entry.(map[string]any); m["name"] != "__name__" {
			matchers = append(matchers, fmt.Sprintf("%s%s%q", m["name"], m["type"], m["value"]))
		}
	}
	slices.Sort(matchers)
	return fmt.Sprintf("%s{%s}", node["name"], strings.Join(matchers, ","))
}

// requireTargets waits until each job has the given number of targets, there are no other jobs, and all targets are up.
func (p *prometheus) requireTargets(want map[string]int) {
	p.w.t.Helper()
	eventually(p.w.t, "Prometheus scrapes", func() error {
		var data struct {
			ActiveTargets []struct {
				Labels            map[string]string
				Health, LastError string
			}
		}
		if err := p.get("targets", url.Values{"state": {"active"}}, &data); err != nil {
			return err
		}
		up := map[string]int{}
		for _, target := range data.ActiveTargets {
			if target.Health != "up" {
				return fmt.Errorf("%v is %s: %s", target.Labels, target.Health, target.LastError)
			}
			up[target.Labels["job"]]++
		}
		for job, n := range want {
			if up[job] != n || len(up) != len(want) {
				return fmt.Errorf("%v are up, want %v", up, want)
			}
		}
		return nil
	})
}

// alerts returns the pending and firing alerts, each as NAME STATE CLUSTER POD, in sorted order. It ignores
// EtcdSlowDisk, because that alert depends on this machine's disk.
func (p *prometheus) alerts() ([]string, error) {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	if err := p.get("alerts", nil, &data); err != nil {
		return nil, err
	}
	var list []string
	for _, a := range data.Alerts {
		if a.Labels["alertname"] == "EtcdSlowDisk" {
			continue
		}
		list = append(list, strings.TrimSpace(strings.Join([]string{a.Labels["alertname"], a.State, a.Labels["name"], a.Labels["pod"]}, " ")))
	}
	slices.Sort(list)
	return list, nil
}

// requireAlerts waits until exactly the given alerts are pending or firing.
func (p *prometheus) requireAlerts(what string, want ...string) {
	p.w.t.Helper()
	start := time.Now()
	eventually(p.w.t, what, func() error {
		got, err := p.alerts()
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("alerts are %q, want %q", got, want)
		}
		return err
	})
	p.w.t.Logf("%s: %q after %s", what, want, time.Since(start).Round(time.Millisecond))
}
