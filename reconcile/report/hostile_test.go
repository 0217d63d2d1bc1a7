package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// saying returns, for each field of a report that may contain untrusted text, a report with the text only in that
// field.
func saying(text string) map[string]report.Report {
	of := func(c report.Cluster) report.Report {
		c.Namespace, c.Name = "ns", "x"
		return report.Report{Clusters: []report.Cluster{c}}
	}
	done := decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}
	member := decide.State{Name: "x", Membership: decide.Membership{Known: true, Members: []decide.Member{{Name: text, Version: "3.6.16"}}}}
	version := decide.State{Name: "x", Membership: decide.Membership{Known: true, Members: []decide.Member{{Name: "x-0", Version: text}}}}
	alarm := decide.State{Name: "x", Membership: decide.Membership{Known: true, Members: []decide.Member{{Name: "x-0", Alarms: []decide.AlarmKind{decide.AlarmKind(text)}}}}}
	told := func(status v1alpha1.EtcdClusterStatus) report.Report {
		return of(report.Cluster{Decision: done, Custom: &v1alpha1.EtcdCluster{Status: status}})
	}
	condition := func(c metav1.Condition) report.Report {
		return told(v1alpha1.EtcdClusterStatus{Conditions: []metav1.Condition{c}})
	}
	return map[string]report.Report{
		"the cluster name":                   {Clusters: []report.Cluster{{Namespace: "ns", Name: text, Decision: done}}},
		"the cluster namespace":              {Clusters: []report.Cluster{{Namespace: text, Name: "x", Decision: done}}},
		"the declared revision":              told(v1alpha1.EtcdClusterStatus{DeclaredRevision: text}),
		"the declared source":                told(v1alpha1.EtcdClusterStatus{DeclaredRevision: "main@sha1:1", DeclaredSource: text}),
		"a condition":                        condition(metav1.Condition{Type: text}),
		"the reason of a condition":          condition(metav1.Condition{Type: "Ready", Reason: text}),
		"the message of a condition":         condition(metav1.Condition{Type: "Ready", Message: text}),
		"a pod":                              of(report.Cluster{Decision: done, State: decide.State{Name: "x", Replicas: []decide.Replica{{PodMessage: text}}}}),
		"a volume":                           of(report.Cluster{Decision: done, State: decide.State{Name: "x", Replicas: []decide.Replica{{VolumeUID: text, Stranded: text}}}}),
		"a certificate":                      of(report.Cluster{Decision: done, State: decide.State{Certificates: []decide.Certificate{{Secret: text, Key: text}}}}),
		"why etcd is unknown":                of(report.Cluster{Decision: done, State: decide.State{Name: "x", Replicas: []decide.Replica{{}}, Membership: decide.Membership{Why: text}}}),
		"a backup":                           of(report.Cluster{Decision: done, State: decide.State{Backups: decide.Backups{Jobs: []decide.BackupJob{{Name: text, Phase: decide.JobFailed}}}}}),
		"a changed field":                    of(report.Cluster{Decision: done, Changes: []report.Change{{Object: "Service x", Field: text, From: 1, To: 2}}}),
		"a changed value":                    of(report.Cluster{Decision: done, Changes: []report.Change{{Field: "spec.x", From: "x", To: text}}}),
		"values in a list":                   of(report.Cluster{Decision: done, Changes: []report.Change{{Field: "spec.x", To: []any{text}}}}),
		"a changed object":                   of(report.Cluster{Decision: done, Changes: []report.Change{{Object: text, What: report.Made}}}),
		"the revision":                       {Revision: text},
		"the signer":                         {Signer: text},
		"one of two sources":                 {Sources: []report.Source{{Source: text, Revision: "main@sha1:1"}, {Source: "two", Revision: "main@sha1:2"}}},
		"the revision of one of two sources": {Sources: []report.Source{{Source: "one", Revision: text}, {Source: "two", Revision: "main@sha1:2"}}},
		"the signer of one of two sources":   {Sources: []report.Source{{Source: "one", Revision: "main@sha1:1", Signer: text}, {Source: "two", Revision: "main@sha1:2"}}},
		"an error":                           {Error: text},
		"a warning":                          {Warnings: []string{text}},
		"a problem":                          {Problems: []report.Problem{{Message: text}}},
		"a file":                             {Problems: []report.Problem{{File: text, Line: 1, Message: "wrong"}}},
		"a source":                           {Problems: []report.Problem{{Source: text, Message: "wrong"}}},
		"another source":                     {Problems: []report.Problem{{Beside: text, Message: "wrong"}}},
		"a removed cluster":                  {Removals: []report.Removal{{Revision: "main@sha1:1", Clusters: []string{text}, Of: 1}}},
		"the revision of a removal":          {Removals: []report.Removal{{Revision: text, Clusters: []string{"ns/x"}, Of: 1}}},
		"a decision":                         of(report.Cluster{Decision: decide.Decision{Rule: "InvalidSpec", Verdict: decide.Block, Message: text}}),
		"an action":                          of(report.Cluster{Decision: decide.Decision{Rule: "R", Verdict: decide.Act, Action: decide.RemoveMember{Name: text}, Message: "m"}}),
		"an outcome":                         of(report.Cluster{Decision: done, Outcome: &report.Outcome{Detail: text}}),
		"a warning about a cluster":          of(report.Cluster{Decision: done, Warnings: []string{text}}),
		"an event":                           of(report.Cluster{Decision: done, Events: []report.Event{{Object: text, Reason: text, Note: text}}}),
		"why there are no events":            of(report.Cluster{Decision: done, NoEvents: text}),
		"an error of a cluster":              of(report.Cluster{Error: text}),
		"the name of a member":               of(report.Cluster{Decision: done, State: member}),
		"the version of a member":            of(report.Cluster{Decision: done, State: version}),
		"an alarm":                           of(report.Cluster{Decision: done, State: alarm}),
	}
}

// TestHostileTextIsEscaped checks that untrusted text is shown as plain text, in every output.
func TestHostileTextIsEscaped(t *testing.T) {
	outputs := map[string]func(io.Writer, report.Report) error{
		"text":    func(w io.Writer, r report.Report) error { return report.Text(w, r, report.Style{}) },
		"members": func(w io.Writer, r report.Report) error { return report.Members(w, r, report.Style{}) },
		"table":   func(w io.Writer, r report.Report) error { return report.Table(w, r, report.Style{}) },
		"detail": func(w io.Writer, r report.Report) error {
			for _, c := range r.Clusters {
				if err := report.Detail(w, c, report.Style{}); err != nil {
					return err
				}
			}
			return nil
		},
		"json":  report.JSON,
		"state": report.States,
		"yaml":  report.StatesYAML,
	}
	printed := map[string]bool{}
	for name, text := range printabletest.Hostile {
		for where, rep := range saying(text) {
			for output, print := range outputs {
				var b bytes.Buffer
				if err := print(&b, rep); err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(b.Bytes(), []byte(printabletest.Mark)) {
					continue // this output does not contain the field
				}
				printed[where], printed[output] = true, true
				if unfit := printabletest.Unfit(b.String()); unfit != "" {
					t.Errorf("%s as %s in %s: %s: %.300q", name, where, output, unfit, b.String())
				}
				if people := output != "json" && output != "state" && output != "yaml"; people && printabletest.Long(b.String()) {
					t.Errorf("%s as %s in %s: a line is too long", name, where, output)
				}
			}
		}
	}
	for where := range saying("") {
		if !printed[where] {
			t.Errorf("%s is not printed in any output", where)
		}
	}
	for output := range outputs {
		if !printed[output] {
			t.Errorf("%s prints nothing", output)
		}
	}
}

// TestNames checks that names that Kubernetes does not allow are omitted, because scripts use names as arguments.
func TestNames(t *testing.T) {
	var b bytes.Buffer
	clusters := []report.Cluster{{Namespace: "prod", Name: "a"}, {Namespace: "prod", Name: "--all"}, {Namespace: "shop", Name: "b"}}
	for name, text := range printabletest.Hostile {
		clusters = append(clusters, report.Cluster{Namespace: "prod", Name: text}, report.Cluster{Namespace: text, Name: name})
	}
	err := report.Names(&b, report.Report{Clusters: clusters})
	const want = "etcdcluster.etcd.quorate.dev/a --namespace prod\netcdcluster.etcd.quorate.dev/b --namespace shop\n"
	if b.String() != want || err == nil || !strings.Contains(err.Error(), "prod/--all is not a valid Kubernetes name") {
		t.Errorf("%.300q; %.300v", b.String(), err)
	}
	b.Reset()
	if err := report.Names(&b, report.Report{}); err != nil || b.Len() != 0 {
		t.Errorf("without clusters: %v %q", err, b.String())
	}
}

// TestStatesYAML checks that YAML has the same content as JSON, and that numbers keep their precision.
func TestStatesYAML(t *testing.T) {
	s := decide.State{Name: "a", Membership: decide.Membership{Members: []decide.Member{{ID: 0xffffffffffffffff, Revision: 1<<62 + 1}}}}
	rep := report.Report{Clusters: []report.Cluster{{Namespace: "ns", Name: "a", State: s}}}
	var asJSON, asYAML, one bytes.Buffer
	if err := errors.Join(report.States(&asJSON, rep), report.StatesYAML(&asYAML, rep), report.StateYAML(&one, rep.Clusters[0])); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  name: a\n", "id: ffffffffffffffff\n", "revision: 4611686018427387905\n"} {
		if !strings.Contains(asYAML.String(), want) {
			t.Errorf("no %q in %s", want, asYAML.String())
		}
	}
	back, err := yaml.YAMLToJSON(asYAML.Bytes())
	var got, want any
	if err := errors.Join(err, json.Unmarshal(back, &got), json.Unmarshal(asJSON.Bytes(), &want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%s\n%s", err, back, asJSON.String())
	}
	if strings.HasPrefix(one.String(), "-") || !strings.Contains(one.String(), "name: a\n") {
		t.Errorf("one: %s", one.String())
	}
}
