package markdown_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	dom "golang.org/x/net/html"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/report/markdown"
	"quorate.dev/quorate/reconcile/simulate"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the comments in testdata")

// planned returns a cluster of the given size after a change to its world, with its forecast.
func planned(name string, replicas int, change func(*simulate.World)) report.Cluster {
	w := simulate.New(name, decide.Declared{Replicas: replicas, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}, 0)
	w.Converge(40)
	change(w)
	entry := report.Cluster{Namespace: "shop", Name: name, State: w.Observe()}
	entry.Decision = decide.Decide(entry.State)
	if ahead := forecast.Of(entry.State); len(ahead.Steps) > 0 {
		entry.Road = &ahead
	}
	return entry
}

func grows(w *simulate.World)    { w.Declared.Replicas = 5 }
func upgrades(w *simulate.World) { w.Declared.Version = "3.7.3" }
func shrinks(w *simulate.World)  { w.Declared.Replicas = 1 }
func stays(*simulate.World)      {}

const revision = "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90"

// told returns the reports for the golden files, by file name.
func told() map[string]report.Report {
	several := report.Report{Revision: revision, Signer: "SHA256:abc ann@example.com", Planned: true, Clusters: []report.Cluster{
		planned("cart", 3, grows), planned("orders", 3, stays), planned("stock", 3, shrinks),
		{Namespace: "shop", Name: "taxes", Error: "list pods: the server is overloaded"},
		{Namespace: "shop", Name: "users", Decision: decide.Decision{Rule: "InvalidSpec", Verdict: decide.Block, Message: "a volume cannot shrink"},
			Warnings: []string{"spec.tls.mode is Disabled: anyone with access to the pods can read and write everything"}},
	}}
	several.Problems = []report.Problem{{File: "clusters/b.yaml", Line: 7, Message: `spec.version: Invalid value: "3.6": a version of etcd is MAJOR.MINOR.PATCH`}}
	several.Removals = []report.Removal{{Revision: revision, Clusters: []string{"shop/a", "shop/b"}, Of: 3}}
	several.Warnings = []string{"https://git.example.com/shop.git declares no cluster"}
	grow, upgrade := planned("cart", 3, grows), planned("cart", 3, upgrades)
	grow.Changes = []report.Change{{Field: "spec.replicas", From: 3, To: 5},
		{Object: "PodDisruptionBudget cart", Field: "spec.minAvailable", From: 2, To: 3}}
	upgrade.Changes = []report.Change{{Field: "spec.version", From: "3.6.16", To: "3.7.3"}}
	return map[string]report.Report{
		"grow":    {Revision: revision, Planned: true, Clusters: []report.Cluster{grow}},
		"upgrade": {Revision: revision, Planned: true, Clusters: []report.Cluster{upgrade}},
		"several": several,
		"done":    {Revision: revision, Planned: true, Clusters: []report.Cluster{planned("cart", 3, stays), planned("orders", 3, stays)}},
	}
}

// TestComment checks complete comments.
func TestComment(t *testing.T) {
	for name, r := range told() {
		got := markdown.Comment(r, markdown.Options{Command: "plan"})
		file := filepath.Join("testdata", name+".md")
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v; got\n%s", name, err, got)
		}
		for _, complaint := range render(t, got).complaints() {
			t.Errorf("%s: %s", name, complaint)
		}
	}
}

// rendered is a comment as a git host renders it.
type rendered struct {
	// words is the complete text, and bare is the text outside code.
	words, bare strings.Builder
	elements    map[string]int
	// columns contains the number of cells of each row, by table.
	columns [][]int
	markup  string
}

func render(t *testing.T, comment string) *rendered {
	t.Helper()
	var b bytes.Buffer
	forge := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := forge.Convert([]byte(comment), &b); err != nil {
		t.Fatal(err)
	}
	document, err := dom.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendered{elements: map[string]int{}, markup: comment}
	r.visit(document, false)
	return r
}

func (r *rendered) visit(n *dom.Node, inCode bool) {
	switch n.Type {
	case dom.TextNode:
		r.words.WriteString(n.Data)
		if !inCode {
			r.bare.WriteString(n.Data)
		}
	case dom.ElementNode:
		r.elements[n.Data]++
		inCode = inCode || n.Data == "code"
		switch n.Data {
		case "table":
			r.columns = append(r.columns, nil)
		case "tr":
			last := len(r.columns) - 1
			r.columns[last] = append(r.columns[last], 0)
		case "td", "th":
			last := len(r.columns) - 1
			r.columns[last][len(r.columns[last])-1]++
		}
	default: // neither text nor an element
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.visit(c, inCode)
	}
	if n.Type == dom.ElementNode && (n.Data == "code" || n.Data == "td" || n.Data == "li") {
		r.bare.WriteString("\x00") // a reference does not continue here
		r.words.WriteString("\x00")
	}
}

var (
	known = []string{"html", "head", "body", "h2", "p", "strong", "code", "ul", "li", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
	// sought matches text that git hosts interpret outside code.
	sought = regexp.MustCompile(`(?i)@[a-z0-9]|#[a-z0-9]|[!~%&$^][a-z0-9]|://|www\.|\bgh-[0-9]|:[a-z0-9+_-]+:|[a-z]@|\b[0-9a-f]{7,40}\b`)
)

// complaints returns errors in the structure, and text that a git host could interpret.
func (r *rendered) complaints() []string {
	var list []string
	for element, n := range r.elements {
		if !slices.Contains(known, element) {
			list = append(list, fmt.Sprintf("it has %d of %s", n, element))
		}
	}
	if n := r.elements["details"]; n != r.elements["summary"] || n != strings.Count(r.markup, "\n</details>\n") || n != strings.Count(r.markup, "\n<details><summary>") {
		list = append(list, fmt.Sprintf("its folds are not balanced: %v", r.elements))
	}
	for _, table := range r.columns {
		if len(table) < 2 || table[0] != 4 && table[0] != 8 || slices.Min(table) != slices.Max(table) {
			list = append(list, fmt.Sprintf("the rows of a table have %v cells", table))
		}
	}
	if found := sought.FindString(r.bare.String()); found != "" {
		list = append(list, fmt.Sprintf("it has %q, and not as code", found))
	}
	for line := range strings.Lines(r.markup) {
		if line = strings.TrimSuffix(line, "\n"); !printable.Is(line) {
			list = append(list, fmt.Sprintf("it has what is not visible: %q", line))
		}
	}
	return list
}

// asShown returns the forms in which a comment may show a text: as a printable line in which markers are broken up,
// and, for table cells, backslashes before pipes too.
func asShown(s string) []string {
	s = strings.ReplaceAll(printable.Line(s), "<!--", "<! --")
	collapse := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return []string{collapse(s), collapse(strings.ReplaceAll(s, `\|`, `\ |`))}
}

// hostile returns a report that contains the given text in every field that may contain untrusted text.
func hostile(said string) report.Report {
	step := forecast.Step{What: said, Action: decide.RemoveMember{Name: said}, Lowest: forecast.Quorum{Voters: 3, Answering: 3},
		Starts: []string{said}, Restarts: []string{said}, Stops: []string{said}, Creates: []string{said}, Deletes: []string{said, said}}
	return report.Report{
		Sources: []report.Source{{Source: said, Revision: said, Signer: said}}, Error: said, Warnings: []string{said}, Planned: true,
		Problems: []report.Problem{{Source: said, File: said, Line: 1, Message: said, Beside: said}},
		Removals: []report.Removal{{Source: said, Revision: said, Clusters: []string{said}, Of: 1}},
		Clusters: []report.Cluster{
			{Namespace: said, Name: said, Warnings: []string{said}, Error: said, Outcome: &report.Outcome{Changed: true, Detail: said},
				Decision: decide.Decision{Rule: "R", Verdict: decide.Act, Message: said, Action: decide.RemoveMember{Name: said}}},
			{Namespace: "shop", Name: "b", Decision: decide.Decision{Rule: "R", Verdict: decide.Act, Message: said, Action: decide.RemoveMember{Name: said}},
				Changes: []report.Change{{Object: said, Field: said, From: said, To: []any{said}}, {Object: said, What: report.Deleted}},
				Road:    &forecast.Forecast{Steps: []forecast.Step{step, step}, End: decide.Decision{Rule: "R", Verdict: decide.Block, Message: said}}},
			{Namespace: "shop", Name: "c", Decision: decide.Decision{Rule: "R", Verdict: decide.Block, Message: said}, Warnings: []string{said}},
		},
	}
}

func checkHostile(t *testing.T, name, said string) {
	t.Helper()
	comment := markdown.Comment(hostile(said), markdown.Options{Command: "plan"})
	r := render(t, comment)
	for _, complaint := range r.complaints() {
		t.Errorf("%s: %s: %.3000q", name, complaint, said)
	}
	if len(comment) > markdown.Most || !strings.HasPrefix(comment, markdown.Marker("plan")+"\n") || strings.Count(comment, "<!--") != 1 {
		t.Errorf("%s: %d bytes, with %d markers", name, len(comment), strings.Count(comment, "<!--"))
	}
	words := strings.Join(strings.FieldsFunc(r.words.String(), func(r rune) bool { return r == ' ' || r == '\n' }), " ")
	shown := asShown(said)
	if short := len(shown[1]) < 200; short && (!strings.Contains(words, shown[0]) || !strings.Contains(words, shown[1])) {
		t.Errorf("%s: it does not show %q: %s", name, shown, comment)
	}
}

// markup contains texts that Markdown or git hosts could interpret.
var markup = []string{
	"@ann", "ann@example.com", "@org/team", "#1", "shop#1", "GH-1", "gh-12", "!1", "~bug", "%milestone", "&1", "$1", ":tada:", "org/repo@aff73df0", "aff73df", "1234567",
	"https://evil.example.com", "www.evil.example.com", "0www.a", "mailto:a@b.example", "[a](https://evil.example.com)", "![](https://evil.example.com/x.png)", "<https://evil.example.com>", "[a]: https://evil.example.com",
	"`", "``", "```", "a`b", "`a", "a`", "` `", "~~~", "|", `\`, `\|`, `\\|`, "a|b", "a|", "|a", "||", "*a*", "__a__", "~~a~~", "# a", "---", "===", "- a", "* a", "1. a", "1) a", "> a", "+ a",
	"<b>", "</details>", "<details>", "</summary>", "</code>", "<!--", "-->", "<!-- quorate plan -->", "<script>alert(1)</script>", "&lt;", "&#64;ann", "<![CDATA[", "]]>", "<?x", "&amp",
	" ", "  ", "\n", "\n\n", "\t", "    a", "\u202e", "\x00", "\x1b[31m", "\xff", "é", "日本", "🔥", "$$a$$", "$`a`$", "{{a}}", "{% a %}", "[[a]]", "[^1]", "- [ ] a", "/close", "::error::x", "##[error]x", ":--:", "|---|", "a", "b", "0",
}

// TestHostileTextIsEscaped checks that untrusted text is shown as plain text everywhere, and does not change how the
// rest of the comment is shown.
func TestHostileTextIsEscaped(t *testing.T) {
	for name, said := range printabletest.Hostile {
		checkHostile(t, name, said)
	}
	for _, said := range markup {
		checkHostile(t, "markup", said)
		checkHostile(t, "markup", "a "+said+" b")
		checkHostile(t, "markup", said+said)
	}
}

// TestCombinedHostileTextIsEscaped checks the same for random combinations of the texts in markup.
func TestCombinedHostileTextIsEscaped(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var said strings.Builder
		for range 1 + random.IntN(8) {
			said.WriteString(markup[random.IntN(len(markup))])
		}
		checkHostile(t, "together", said.String())
		if t.Failed() {
			return
		}
	}
}

func FuzzComment(f *testing.F) {
	for _, said := range markup {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said string) { checkHostile(t, "fuzzed", said) })
}

// TestPipelinePage checks that the comment in docs/how-to/pipeline.md is the output of Comment.
func TestPipelinePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	want := markdown.Comment(told()["grow"], markdown.Options{Command: "plan"})
	if !strings.Contains(string(page), "\n```markdown\n"+want+"```\n") {
		t.Errorf("docs/how-to/pipeline.md does not show\n%s", want)
	}
}

// TestREADME checks that the comment in the README is the output of Comment for an upgrade, except that it is unfolded.
func TestREADME(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	comment := markdown.Comment(told()["upgrade"], markdown.Options{Command: "plan"})
	comment = strings.TrimSpace(strings.TrimPrefix(comment, markdown.Marker("plan")))
	comment = strings.Replace(comment, "<details>", "<details open>", 1)
	quoted := "\n> " + strings.ReplaceAll(strings.ReplaceAll(comment, "\n", "\n> "), "\n> \n", "\n>\n") + "\n\n"
	if !strings.Contains(string(page), quoted) {
		t.Errorf("README.md does not show\n%s", quoted)
	}
}

// many returns a report about n clusters, each with a planned change.
func many(n int, words string) report.Report {
	r := report.Report{Revision: revision, Planned: true}
	change := planned("a", 3, shrinks)
	for i := range n {
		c := change
		c.Name = fmt.Sprintf("a-%04d", i)
		c.Decision.Message += words
		if i == n-1 {
			c.Name, c.Error = "the-worst", "it fails"
		}
		r.Clusters = append(r.Clusters, c)
	}
	return r
}

// TestCommentStaysWithinLimit checks that a comment never exceeds its limit. Forecasts are omitted before reasons, and
// reasons before clusters; the most severe clusters are omitted last. The comment mentions all omissions.
func TestCommentStaysWithinLimit(t *testing.T) {
	for _, most := range []int{1, 10_000, 65536, 1_000_000} {
		for _, n := range []int{0, 1, 20, 70, 1000} {
			for _, words := range []string{"", strings.Repeat(" | @x", 100), strings.Repeat("`x", 4000)} {
				r := many(n, words)
				for i := range n {
					r.Problems = append(r.Problems, report.Problem{File: "a.yaml", Line: i, Message: "wrong" + words})
					r.Warnings = append(r.Warnings, words)
					r.Removals = append(r.Removals, report.Removal{Revision: words, Clusters: []string{words}})
				}
				comment := markdown.Comment(r, markdown.Options{Command: "plan", Most: most})
				what := fmt.Sprintf("%d clusters within %d", n, most)
				if len(comment) > max(most, 4096) {
					t.Errorf("%s: it has %d bytes", what, len(comment))
				}
				if n > 0 && !strings.Contains(comment, "| shop/the-worst |") {
					t.Errorf("%s: the worst is missing", what)
				}
				page := render(t, comment)
				for _, complaint := range page.complaints() {
					t.Errorf("%s: %s", what, complaint)
				}
				rows, folds := 0, page.elements["details"]
				if len(page.columns) > 0 {
					rows = len(page.columns[0]) - 1
				}
				if folds > 0 && rows < n {
					t.Errorf("%s: %d rows, but %d folds", what, rows, folds)
				}
				if missing := rows < n || folds < n; missing && !strings.Contains(comment, "Omitted for lack of space") {
					t.Errorf("%s: with %d rows and %d folds, the omissions are not mentioned", what, rows, folds)
				}
				if n == 20 && most == 1_000_000 && words == "" && (rows != 20 || folds != 20 || strings.Contains(comment, "no room")) {
					t.Errorf("%s: %d rows and %d folds", what, rows, folds)
				}
			}
		}
	}
}
