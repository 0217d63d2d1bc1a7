package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// monitoring is the content of deploy/monitoring, as rendered by kubectl.
type monitoring struct {
	pods       []podMonitor
	rules      map[string]any // content of a Prometheus rules file
	dashboards map[string]string
}

// podMonitor contains the fields of a PodMonitor that deploy/monitoring uses. The test cannot translate any other
// fields.
type podMonitor struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		NamespaceSelector   struct{ Any bool }
		Selector            struct{ MatchLabels map[string]string }
		PodMetricsEndpoints []endpoint
	}
}

type endpoint struct {
	Port                           string
	HonorLabels                    bool
	Relabelings, MetricRelabelings []relabeling
}

type relabeling struct {
	SourceLabels               []string
	TargetLabel, Regex, Action string
}

// monitoring renders deploy/monitoring.
func (w *world) monitoring() monitoring {
	w.t.Helper()
	var m monitoring
	for _, document := range strings.Split(w.kubectl("kustomize", filepath.Join(root(), "deploy", "monitoring")), "\n---\n") {
		var object struct {
			Kind string
			Spec map[string]any
			Data map[string]string
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			w.t.Fatal(err)
		}
		switch object.Kind {
		case "PrometheusRule":
			m.rules = object.Spec
		case "ConfigMap":
			m.dashboards = object.Data
		case "PodMonitor":
			var pods podMonitor
			if err := yaml.UnmarshalStrict([]byte(document), &pods); err != nil {
				w.t.Fatal(err)
			}
			m.pods = append(m.pods, pods)
		}
	}
	if len(m.pods) != 2 || m.rules == nil || len(m.dashboards) != 2 {
		w.t.Fatalf("deploy/monitoring has %d PodMonitors, %d dashboards", len(m.pods), len(m.dashboards))
	}
	return m
}

var notInLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// scrapes translates the PodMonitors to scrape configurations, as the Prometheus operator does. If a PodMonitor selects
// any namespace, it is limited to the given namespace, because other tests have clusters at the same time.
func (m monitoring) scrapes(kubeconfig, namespace string) []map[string]any {
	var jobs []map[string]any
	for _, pods := range m.pods {
		from := namespace
		if !pods.Spec.NamespaceSelector.Any {
			from = pods.Metadata.Namespace
		}
		for i, e := range pods.Spec.PodMetricsEndpoints {
			relabel := []map[string]any{{"source_labels": []string{"__meta_kubernetes_pod_phase"}, "regex": "(Failed|Succeeded)", "action": "drop"}}
			for _, name := range slices.Sorted(maps.Keys(pods.Spec.Selector.MatchLabels)) {
				label := notInLabel.ReplaceAllString(name, "_")
				relabel = append(relabel, map[string]any{
					"source_labels": []string{"__meta_kubernetes_pod_label_" + label, "__meta_kubernetes_pod_labelpresent_" + label},
					"regex":         "(" + regexp.QuoteMeta(pods.Spec.Selector.MatchLabels[name]) + ");true", "action": "keep",
				})
			}
			relabel = append(relabel, map[string]any{"source_labels": []string{"__meta_kubernetes_pod_container_port_name"}, "regex": e.Port, "action": "keep"})
			for _, of := range [][2]string{{"namespace", "namespace"}, {"pod_container_name", "container"}, {"pod_name", "pod"}} {
				relabel = append(relabel, map[string]any{"source_labels": []string{"__meta_kubernetes_" + of[0]}, "target_label": of[1]})
			}
			job := pods.Metadata.Namespace + "/" + pods.Metadata.Name
			relabel = append(relabel, map[string]any{"target_label": "job", "replacement": job}, map[string]any{"target_label": "endpoint", "replacement": e.Port})
			jobs = append(jobs, map[string]any{
				"job_name":               fmt.Sprintf("podMonitor/%s/%d", job, i),
				"honor_labels":           e.HonorLabels,
				"kubernetes_sd_configs":  []map[string]any{{"role": "pod", "kubeconfig_file": kubeconfig, "namespaces": map[string]any{"names": []string{from}}}},
				"relabel_configs":        append(relabel, relabelings(e.Relabelings)...),
				"metric_relabel_configs": relabelings(e.MetricRelabelings),
			})
		}
	}
	return jobs
}

func relabelings(list []relabeling) []map[string]any {
	configs := []map[string]any{}
	for _, r := range list {
		config := map[string]any{"source_labels": r.SourceLabels}
		for key, value := range map[string]string{"target_label": r.TargetLabel, "regex": r.Regex, "action": r.Action} {
			if value != "" {
				config[key] = value
			}
		}
		configs = append(configs, config)
	}
	return configs
}

// each calls do for each rule.
func (m monitoring) each(do func(rule map[string]any)) {
	groups, _ := m.rules["groups"].([]any)
	for _, group := range groups {
		rules, _ := group.(map[string]any)["rules"].([]any)
		for _, rule := range rules {
			do(rule.(map[string]any))
		}
	}
}

// rulesWithin returns the rules after setting the pending period of each alert to soon.
func (m monitoring) rulesWithin(soon string) map[string]any {
	m.each(func(rule map[string]any) {
		if rule["for"] != nil {
			rule["for"] = soon
		}
	})
	return m.rules
}

// absentWhenWell maps selectors that return nothing while everything is healthy to the reason why this is correct.
var absentWhenWell = map[string]string{
	`quorate_cluster_decision{verdict="Block"}`:                  "there is one only while a cluster needs a person",
	`quorate_cluster_decision{kubernetes=~".*",verdict="Block"}`: "the same, in a dashboard",
}

// requireRules waits until each rule has been evaluated without an error and all series that it reads exist.
func (p *prometheus) requireRules(m monitoring) {
	p.w.t.Helper()
	want := map[string]bool{}
	m.each(func(rule map[string]any) {
		name := fmt.Sprint(rule["alert"])
		if rule["alert"] == nil {
			name = fmt.Sprint(rule["record"])
		}
		want[name] = true
		p.requireSelectors("rule "+name, fmt.Sprint(rule["expr"]))
	})
	eventually(p.w.t, "all rules are evaluated", func() error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := p.get("rules", nil, &data); err != nil {
			return err
		}
		got := map[string]bool{}
		for _, group := range data.Groups {
			for _, rule := range group.Rules {
				if got[rule.Name] = true; rule.Health != "ok" {
					return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
				}
			}
		}
		if len(want) < 20 || !maps.Equal(got, want) {
			return fmt.Errorf("rules are %v, want %v", got, want)
		}
		return nil
	})
}

// requireSelectors waits until all series that an expression reads exist, except those that are absent while everything
// is healthy.
func (p *prometheus) requireSelectors(what, expr string) {
	p.w.t.Helper()
	var selectors []string
	if err := poll(p.w.t.Context(), patience, func() (err error) { selectors, err = p.selectors(expr); return err }); err != nil {
		p.w.t.Fatal(err)
	}
	for _, s := range selectors {
		if absentWhenWell[s] != "" {
			continue
		}
		if err := poll(p.w.t.Context(), patience/6, func() error { return p.found(s) }); err != nil {
			p.w.t.Errorf("%s: %v", what, err)
		}
	}
}

// found returns nil if an expression currently returns a series.
func (p *prometheus) found(expr string) error {
	n, err := p.query(expr)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s finds nothing", expr)
	}
	return err
}

// dashboard contains the fields of a dashboard that the test reads.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type, Query, AllValue string
			IncludeAll                  bool
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// requireDashboards fails the test unless, with the given values of the variables, each panel query and each selector
// in it returns a series. The variables of the dashboards must offer these values.
func (p *prometheus) requireDashboards(texts, chosen map[string]string) {
	p.w.t.Helper()
	queries := 0
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var d dashboard
		if err := json.Unmarshal([]byte(texts[name]), &d); err != nil {
			p.w.t.Fatal(err)
		}
		replace := p.fill(name, d, chosen)
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				queries++
				what, expr := name+": "+panel.Title, replace(target.Expr)
				if err := poll(p.w.t.Context(), patience/6, func() error { return p.found(expr) }); err != nil {
					p.w.t.Errorf("%s: %v", what, err)
				}
				p.requireSelectors(what, expr)
			}
		}
	}
	if queries < 35 {
		p.w.t.Errorf("only %d queries", queries)
	}
}

// fill returns a function that inserts the values of variables into a dashboard query, as Grafana would.
func (p *prometheus) fill(name string, d dashboard, chosen map[string]string) func(string) string {
	p.w.t.Helper()
	replace := func(expr string) string { return expr }
	for _, v := range d.Templating.List {
		query := labelValues.FindStringSubmatch(replace(v.Query))
		if query == nil {
			continue
		}
		var values []string
		if err := p.get("label/"+query[2]+"/values", url.Values{"match[]": {query[1]}}, &values); err != nil {
			p.w.t.Fatal(err)
		}
		value := chosen[v.Name]
		switch {
		case value == "" && v.IncludeAll:
			value = v.AllValue
		case !slices.Contains(values, value):
			p.w.t.Errorf("%s: %s can be %q, and not %q", name, v.Name, values, value)
		}
		before := replace
		replace = func(expr string) string { return strings.ReplaceAll(before(expr), "$"+v.Name, value) }
	}
	return replace
}
