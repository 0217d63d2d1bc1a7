package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// dashboard contains the fields of a dashboard that the tests use.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.*), \w+\)$`)

// TestDashboards checks that each query can be parsed, uses only metrics that exist, and returns data for a healthy
// fleet. It tests a single Kubernetes cluster, which has no name, and one of several Kubernetes clusters.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob(monitoring + "dashboards/*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	series := loading(well) + strings.TrimPrefix(more, "\n")
	t.Run("one Kubernetes cluster", func(t *testing.T) { queryAll(t, files, series, ".*") })
	named := regexp.MustCompile(`(?m)^  (quorate_\w+)\{`).ReplaceAllString(series, `  $1{kubernetes="eu",`)
	t.Run("several", func(t *testing.T) { queryAll(t, files, named, "eu") })
}

// more contains the series that are shown by dashboards but not used by alerts.
const more = `
  quorate_cluster_members{namespace="shop",name="a",role="Leader",health="Healthy"} 1x180
  quorate_cluster_member_versions{namespace="shop",name="a",version="3.6.16"} 3x180
  quorate_cluster_members_declared{namespace="shop",name="a"} 3x180
  quorate_cluster_db_in_use_bytes{namespace="shop",name="a"} 1x180
  quorate_cluster_backup_last_success_timestamp_seconds{namespace="shop",name="a"} 1x180
  quorate_cluster_drill_duration_seconds{namespace="shop",name="a"} 1x180
  quorate_cluster_last_observed_timestamp_seconds{namespace="shop",name="a"} 1x180
  quorate_source_last_success_timestamp_seconds{source="fleet.git"} 1x180
  quorate_source_commit_timestamp_seconds{source="fleet.git"} 1x180
  quorate_phase_duration_seconds_bucket{phase="observe",le="+Inf"} 0+1x180
  quorate_api_requests_total{verb="list",code="2xx"} 0+1x180
  quorate_lease_conflicts_total{} 0x180
  etcd_disk_backend_commit_duration_seconds_bucket{namespace="shop",name="a",pod="a-0",le="+Inf"} 0+1x180
  etcd_server_proposals_committed_total{namespace="shop",name="a",pod="a-0"} 0+1x180
  etcd_server_proposals_failed_total{namespace="shop",name="a",pod="a-0"} 0x180
  etcd_mvcc_db_total_size_in_bytes{namespace="shop",name="a",pod="a-0"} 1x180
`

// queryAll requires that each query of each dashboard returns data from series. kubernetes is the value of the
// variable $kubernetes.
func queryAll(t *testing.T, files []string, series, kubernetes string) {
	t.Helper()
	storage := promqltest.LoadedStorage(t, series)
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6)
	there := known(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil || len(d.Panels) < 10 {
			t.Fatalf("%s: %d panels, %v", file, len(d.Panels), err)
		}
		queries := map[string]string{}
		for _, v := range d.Templating.List {
			if m := labelValues.FindStringSubmatch(v.Query); m != nil {
				queries["variable "+v.Name] = m[1]
			} else if v.Type == "query" {
				t.Errorf("%s: %s is %q", file, v.Name, v.Query)
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				queries[p.Title+": "+target.Expr] = target.Expr
			}
		}
		for what, expr := range queries {
			expr = strings.NewReplacer("$kubernetes", kubernetes, "$namespace", "shop", "$name", "a").Replace(expr)
			if names := unknown(t, there, expr); len(names) > 0 {
				t.Errorf("%s: %s: there is no metric %q", file, what, names)
			}
			query, err := engine.NewInstantQuery(t.Context(), storage, nil, expr, time.Unix(0, 0).Add(length))
			if err != nil {
				t.Errorf("%s: %s: %v", file, what, err)
				continue
			}
			if vector, err := query.Exec(t.Context()).Vector(); err != nil || len(vector) == 0 {
				t.Errorf("%s: %s finds nothing, %v", file, what, err)
			}
			query.Close()
		}
	}
}
