package report_test

import (
	"os"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// refused returns a report about a cluster whose declaration has two problems, and which is also rejected for a reason
// outside its source.
func refused() report.Report {
	problems := []report.Problem{
		{File: "a.yaml", Line: 6, Cluster: "shop/a", Message: "spec.replicas: Invalid value: 0: should be greater than or equal to 1"},
		{File: "a.yaml", Line: 7, Cluster: "shop/a", Message: "spec.version: 3.7 is a number, but must be a string: quote it"},
	}
	s := decide.State{Name: "a", Declared: decide.Declared{Problems: []string{problems[1].String(), "a volume cannot shrink", problems[0].String()}}}
	return report.Report{
		Revision: "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90",
		Clusters: []report.Cluster{{Namespace: "shop", Name: "a", Decision: decide.Decide(s), State: s}},
		Problems: problems,
	}
}

// Each problem with a declaration is shown once.
func ExampleText_problems() {
	_ = report.Text(os.Stdout, refused(), report.Style{})
	// Output:
	// revision main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90
	// shop/a  Block  InvalidSpec
	//     a volume cannot shrink; see the problems below; the running cluster is left unchanged
	// problem a.yaml:6: spec.replicas: Invalid value: 0: should be greater than or equal to 1
	// problem a.yaml:7: spec.version: 3.7 is a number, but must be a string: quote it
	// 1 cluster, 1 blocked, 2 problems in the source
}

// On a terminal, long lines are wrapped between words and indented.
func ExampleText_terminal() {
	rep := refused()
	rep.Clusters[0].Warnings = []string{"spec.tls.mode is Disabled: anyone with access to the pods can read and write everything"}
	_ = report.Text(os.Stdout, rep, report.Style{Width: 60})
	// Output:
	// revision main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90
	// shop/a  Block  InvalidSpec
	//     a volume cannot shrink; see the problems below; the
	//         running cluster is left unchanged
	//     warning spec.tls.mode is Disabled: anyone with access to
	//         the pods can read and write everything
	// problem a.yaml:6: spec.replicas: Invalid value: 0: should be
	//         greater than or equal to 1
	// problem a.yaml:7: spec.version: 3.7 is a number, but must be
	//         a string: quote it
	// 1 cluster, 1 blocked, 2 problems in the source
}

func TestWrap(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"short", "short"},
		{"ünï cödë wörds", "ünï cödë\n  wörds"}, // the width is in columns, not bytes
		{"averylongwordthatfitsnowhere x", "averylongwordthatfitsnowhere\n  x"},
		{"版本 必须 是文本", "版本 必须\n  是文本"},                                              // each character takes two columns
		{"🔥🔥 🔥🔥 x", "🔥🔥 🔥🔥\n  x"},                                                  // each emoji takes two columns
		{"e\u0301te\u0301 e\u0301te\u0301 x", "e\u0301te\u0301 e\u0301te\u0301 x"}, // combining accents take no column
		{"something ::error::y", "something ::error::y"},                           // a line does not begin with a command
		{"something  ::error::y", "something  ::error::y"},                         // nor with an empty word before a command
		{"two\nlines", "two lines"},
	} {
		if got := (report.Style{Width: 10}).Wrap(test.text, 0, 2); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
		if got := (report.Style{}).Wrap(test.text, 0, 2); got != strings.ReplaceAll(test.text, "\n", " ") {
			t.Errorf("%q without a width: got %q", test.text, got)
		}
	}
}
