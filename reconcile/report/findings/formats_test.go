package findings_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/report/findings"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in testdata")

func junit(w io.Writer, r report.Report, list []findings.Finding) error {
	return findings.JUnit(w, "plan", r, list)
}

func asSARIF(w io.Writer, r report.Report, list []findings.Finding) error {
	return findings.SARIF(w, "v1.2.3", r, list)
}

var formats = map[string]func(io.Writer, report.Report, []findings.Finding) error{"junit.xml": junit, "sarif.json": asSARIF}

// TestFormatsMatchGolden checks that the JUnit and SARIF output matches the golden files.
func TestFormatsMatchGolden(t *testing.T) {
	r := wrong("what is wrong: this")
	for name, write := range formats {
		var got bytes.Buffer
		if err := write(&got, r, findings.Of(r, findings.Options{FailOn: []forecast.Risk{forecast.DeletesData}})); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if *rewrite {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || got.String() != string(want) {
			t.Errorf("%s: %v; got\n%s", name, err, got.String())
		}
	}
}

// TestFormatsEscapeHostileText checks that untrusted text is shown as plain text, and that the documents are valid.
func TestFormatsEscapeHostileText(t *testing.T) {
	texts := map[string]string{"a link of SARIF": "[sign in](https://evil.example.com)" + printabletest.Mark, "markup": `]]></failure><!--&lt;"'` + printabletest.Mark, "slashes": "a/b/c" + printabletest.Mark}
	for name, text := range printabletest.Hostile {
		texts[name] = text
	}
	for name, text := range texts {
		r := wrong(text)
		r.Clusters[2].Namespace, r.Clusters[2].Name = text, text
		r.Problems = append(r.Problems, report.Problem{File: text, Line: 2, Cluster: text, Message: text}, report.Problem{File: "a b:c#d?.yaml", Message: text})
		list := findings.Of(r, findings.Options{FailOn: []forecast.Risk{forecast.DeletesData}})
		for format, write := range formats {
			var b bytes.Buffer
			if err := write(&b, r, list); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if line = strings.TrimSuffix(line, "\n"); !printable.Is(line) || strings.Contains(line, "##") || strings.HasPrefix(strings.TrimSpace(line), "::") {
					t.Errorf("%s in %s: %.300q", name, format, line)
				}
			}
			switch format {
			case "junit.xml":
				checkJUnit(t, name, b.Bytes(), text)
			default:
				checkSARIF(t, name, b.Bytes(), text)
			}
		}
	}
}

func checkJUnit(t *testing.T, name string, document []byte, said string) {
	t.Helper()
	type result struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suite    struct {
			Cases []struct {
				Name    string  `xml:"name,attr"`
				Failure *result `xml:"failure"`
				Error   *result `xml:"error"`
				Out     string  `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(document, &got); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	failures, errors, told := 0, 0, 0
	for _, c := range got.Suite.Cases {
		for _, r := range []*result{c.Failure, c.Error} {
			if r != nil && strings.Contains(r.Text, printable.Line(said)) {
				told++
			}
		}
		if c.Failure != nil {
			failures++
		}
		if c.Error != nil {
			errors++
		}
	}
	if len(got.Suite.Cases) != got.Tests || failures != got.Failures || errors != got.Errors || told < 3 {
		t.Errorf("%s: it counts %d, %d and %d; the actual counts are %d, %d and %d, and %d contain it", name, got.Tests, got.Failures, got.Errors, len(got.Suite.Cases), failures, errors, told)
	}
}

// valid checks a document against the SARIF 2.1.0 schema published by OASIS.
func valid(t *testing.T, document []byte) error {
	t.Helper()
	compiled := schema()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

var schema = sync.OnceValue(func() *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c.MustCompile("testdata/sarif-schema-2.1.0.json")
})

func checkSARIF(t *testing.T, name string, document []byte, said string) {
	t.Helper()
	if err := valid(t, document); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var got struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				RuleIndex int
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
		}
	}
	if err := json.Unmarshal(document, &got); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	told := 0
	for _, r := range got.Runs[0].Results {
		if got.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || len(r.Locations) != 1 || r.Locations[0].PhysicalLocation.ArtifactLocation.URI == "" {
			t.Errorf("%s: the result is %+v", name, r)
		}
		if strings.Contains(r.Message.Text, "](") {
			t.Errorf("%s: it contains a link: %.300q", name, r.Message.Text)
		}
		if strings.Contains(r.Message.Text, strings.ReplaceAll(printable.Line(said), "](", "] (")) {
			told++
		}
	}
	if told < 2 {
		t.Errorf("%s: %d results contain it", name, told)
	}
}

// TestSchemaRejectsInvalidSARIF checks that the schema check rejects an invalid document.
func TestSchemaRejectsInvalidSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := findings.SARIF(&b, "v1", report.Report{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := valid(t, b.Bytes()); err != nil {
		t.Error(err)
	}
	for old, new := range map[string]string{`"2.1.0"`: `"2.0.0"`, `"unicodeCodePoints"`: `"bytes"`, `"results"`: `"resulting"`, `"tool"`: `"tools"`} {
		if valid(t, []byte(strings.Replace(b.String(), old, new, 1))) == nil {
			t.Errorf("it takes %s for %s", new, old)
		}
	}
}

// TestSARIFResultsAreLimited checks that results beyond GitHub's limit are omitted and counted.
func TestSARIFResultsAreLimited(t *testing.T) {
	var r report.Report
	for range 5002 {
		r.Problems = append(r.Problems, report.Problem{File: "a.yaml", Line: 1, Message: "wrong"})
	}
	var b bytes.Buffer
	if err := findings.SARIF(&b, "v1", r, findings.Of(r, findings.Options{})); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), `"ruleId"`); n != 5000 || !strings.Contains(b.String(), "2 other results omitted") {
		t.Errorf("got %d", n)
	}
}

// TestFormatsStateAssumptionsOfPlan checks that each format contains the assumptions of an offline plan, as the text
// output does, and the digest of a live plan. The name of a revision is not interpreted as a command.
func TestFormatsStateAssumptionsOfPlan(t *testing.T) {
	offline := wrong("x")
	offline.Compared = &report.Comparison{Against: "main\n::error::<x>](y)" + printabletest.Mark}
	live := wrong("x")
	live.Compared = nil
	all := maps.Clone(formats)
	all["github"] = findings.GitHub
	for name, write := range all {
		for what, test := range map[string]struct {
			r    report.Report
			said []string
			not  []string
		}{
			"offline":   {offline, []string{"no live state was observed: clusters are assumed to match main", "roads assume that pods start"}, []string{"sha256:"}},
			"live":      {live, []string{live.Digest()}, []string{"no live state was observed"}},
			"validated": {report.Report{}, nil, []string{"sha256:", "observed", "granted", "notice", "properties"}},
		} {
			var b bytes.Buffer
			if err := write(&b, test.r, findings.Of(test.r, findings.Options{})); err != nil {
				t.Fatal(err)
			}
			for _, said := range test.said {
				if !strings.Contains(b.String(), said) {
					t.Errorf("%s, %s: it does not contain %q:\n%s", what, name, said, &b)
				}
			}
			for _, not := range test.not {
				if strings.Contains(b.String(), not) {
					t.Errorf("%s, %s: got %q:\n%s", what, name, not, &b)
				}
			}
			for line := range strings.Lines(b.String()) {
				if !printable.Is(strings.TrimSuffix(line, "\n")) || strings.HasPrefix(line, "::error::<x>") {
					t.Errorf("%s, %s: %q", what, name, line)
				}
			}
			if name == "sarif.json" {
				if err := valid(t, b.Bytes()); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
}
