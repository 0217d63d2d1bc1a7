package fleetfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/fleetfile"
)

func TestParse(t *testing.T) {
	list, problems := fleetfile.Parse([]byte(`# ours
clusters:
- name: eu-1
  kubeconfig: eu-1.kubeconfig
  path: clusters/eu-1
  shard: 0/2
- {name: us.1, context: "arn:aws:eks:us-east-1:1:cluster/x"}
- {name: both, kubeconfig: /etc/x, context: admin}
- {name: capi, secret: fleet/capi-kubeconfig}
`))
	want := []fleetfile.Cluster{
		{Name: "eu-1", Kubeconfig: "eu-1.kubeconfig", Path: "clusters/eu-1", Shard: "0/2"},
		{Name: "us.1", Context: "arn:aws:eks:us-east-1:1:cluster/x"},
		{Name: "both", Kubeconfig: "/etc/x", Context: "admin"}, {Name: "capi", Secret: "fleet/capi-kubeconfig"},
	}
	if len(problems) > 0 || !slices.Equal(list, want) {
		t.Errorf("%+v, %+v", list, problems)
	}
}

// TestProblems checks that all problems are reported together, with their line numbers, and that no clusters are
// returned.
func TestProblems(t *testing.T) {
	list, problems := fleetfile.Parse([]byte(`clusters:
- name: eu-1
  context: a
- name: eu-1
  context: b
  contxt: c
- name: EU
  secret: fleet
- context: a
  shard: 2/2
- name: x
- name: y
  kubeconfig: ""
  context: 7
- name: z
  secret: a/b
  context: z
  context: z
- eu-2
- name: [a]
  context: {a: b}
more: 1
`))
	want := []string{
		`4: clusters[1].name: "eu-1" is already the name of the cluster in line 2`,
		`6: clusters[1]: unknown field "contxt"; fields are name, kubeconfig, context, secret, path, shard`,
		`7: clusters[2].name: "EU": expected up to 63 lowercase letters, digits, - and .`,
		`8: clusters[2].secret: "fleet": expected NAMESPACE/NAME`,
		`9: clusters[3].name is required`,
		`10: clusters[3].shard: "2/2": expected i/n, such as 0/4: the shard number, starting at 0, and the number of shards, up to 1000`,
		`11: clusters[4]: expected kubeconfig, context, both, or secret`,
		`13: clusters[5].kubeconfig: the value is empty; omit the field`,
		`14: clusters[5].context: must be a string, in quotes if it looks like another type`,
		`15: clusters[6]: the secret already contains a kubeconfig; set either secret, or kubeconfig, context or both`,
		`18: clusters[6].context is set twice`,
		`19: clusters[7]: expected fields: name, kubeconfig, context, secret, path, shard`,
		`20: clusters[8].name: must be a string, in quotes if it looks like another type`,
		`21: clusters[8].context: must be a string, in quotes if it looks like another type`,
		`22: the file: unknown field "more"; fields are clusters`,
	}
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Message))
	}
	if list != nil || !slices.Equal(got, want) {
		t.Errorf("%+v\n%s", list, strings.Join(got, "\n"))
	}
}

// TestInvalidFleetFileIsRejected checks that content that is not a fleet file is rejected with a problem.
func TestInvalidFleetFileIsRejected(t *testing.T) {
	bomb := "a: &a [x, x]\nb: &b [*a, *a]\nclusters: *b\n"
	for _, text := range []string{"", "# nothing", "---", "x", "[]", "clusters:", "clusters: []", "clusters: {}", "clusters: x", "x: [", "\tx: y", bomb,
		"clusters: [{name: a, context: b}]\n---\nclusters: [{name: c, context: d}]\n", "clusters: &a [*a]", strings.Repeat("#", fleetfile.MostBytes+1)} {
		list, problems := fleetfile.Parse([]byte(text))
		if list != nil || len(problems) == 0 || problems[0].Line < 1 || problems[0].Message == "" {
			t.Errorf("%.40q: %+v, %+v", text, list, problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("clusters: [{name: a, context: b}]")
	f.Add("clusters: &a [*a]")
	f.Add("clusters:\n- name: eu-1\n  secret: a/b\n  shard: 0/2\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, problems := fleetfile.Parse([]byte(text))
		if (len(list) > 0) == (len(problems) > 0) {
			t.Errorf("%+v, %+v", list, problems)
		}
		names := map[string]bool{}
		for _, c := range list {
			if c.Name == "" || names[c.Name] || (c.Secret == "") == (c.Kubeconfig+c.Context == "") {
				t.Errorf("%+v", list)
			}
			names[c.Name] = true
		}
	})
}
