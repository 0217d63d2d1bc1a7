package findings

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/report"
)

type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	counts
	Suite suite `xml:"testsuite"`
}

type suite struct {
	counts
	Properties *properties `xml:"properties"`
	Cases      []*testCase `xml:"testcase"`
}

type properties struct {
	List []property `xml:"property"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type counts struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
}

type testCase struct {
	Class   string `xml:"classname,attr"`
	Name    string `xml:"name,attr"`
	File    string `xml:"file,attr,omitempty"`
	Line    int    `xml:"line,attr,omitempty"`
	Failure *fault `xml:"failure"`
	Error   *fault `xml:"error"`
	Out     string `xml:"system-out,omitempty"`
}

type fault struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the findings in the report of a command as test results. Each cluster is a test case. Other findings
// belong to a test case for their file or, without a file, for the source. A test case with errors has a failure whose
// text contains all of them; if the outcome is unknown, it has an error instead of a failure. Warnings are the output
// of the test case. The digest and the assumptions of a plan are properties.
func JUnit(w io.Writer, command string, r report.Report, findings []Finding) error {
	cases := map[string]*testCase{}
	of := func(cluster, file string) *testCase {
		class, name := "source", cmp.Or(file, "source")
		if title := printable.Line(cluster); strings.Contains(title, "/") {
			end := strings.LastIndex(title, "/") // the name of a Kubernetes cluster may contain slashes
			class, name = title[:end], title[end+1:]
		}
		key := class + "\x00" + name
		if cases[key] == nil {
			cases[key] = &testCase{Class: class, Name: name}
		}
		return cases[key]
	}
	for _, c := range r.Clusters {
		of(c.Title(), "")
	}
	for _, f := range findings {
		of(f.Cluster, f.File).add(f)
	}
	all := suite{counts: counts{Name: "quorate " + command, Tests: len(cases)}, Properties: propertiesOf(r)}
	for _, c := range cases {
		all.Cases = append(all.Cases, c)
		if c.Failure != nil {
			all.Failures++
		}
		if c.Error != nil {
			all.Errors++
		}
	}
	slices.SortFunc(all.Cases, func(a, b *testCase) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Name, b.Name))
	})
	document, err := xml.MarshalIndent(suites{counts: all.counts, Suite: all}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, document)
	return err
}

// propertiesOf returns the properties of a plan, or nil if there are none.
func propertiesOf(r report.Report) *properties {
	var list []property
	for _, p := range []property{{"digest", r.Digest()}, {"assumed", printable.Line(strings.Join(r.Assumed(), "; "))}} {
		if p.Value != "" {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &properties{list}
}

// add adds a finding to a test case. Findings must be added most severe first.
func (c *testCase) add(f Finding) {
	if c.File == "" {
		c.File, c.Line = f.File, f.Line
	}
	if f.Level == Warning {
		c.Out += f.where() + f.Message + "\n"
		return
	}
	at := &c.Failure
	if c.Error != nil || c.Failure == nil && f.Rule == Unread {
		at = &c.Error
	}
	if *at == nil {
		*at = &fault{Type: f.Rule, Message: f.Message}
	}
	(*at).Text += f.where() + f.Message + "\n"
}

// where returns file and line, if they are known, as a prefix.
func (f Finding) where() string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return f.File + ": "
	}
	return fmt.Sprintf("%s:%d: ", f.File, f.Line)
}
