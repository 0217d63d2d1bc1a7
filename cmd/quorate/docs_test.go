package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/reconcile/approval"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages returns all documentation pages.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "sandbox/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			list = append(list, strings.TrimPrefix(path, "../../"))
		}
	}
	if len(list) < 30 {
		t.Fatalf("only %q found", list)
	}
	return list
}

var labelled = regexp.MustCompile(`(?s)^\n- \*\*Symptom:\*\* .*\n- \*\*Meaning:\*\* .*\n- \*\*What Quorate does:\*\* .*\n- \*\*What to do:\*\* `)

// TestRunbookHasEveryRule checks that the runbook has a section for each rule, in the order of the rules. Each section
// must contain the symptom, its meaning, what Quorate does, and what to do.
func TestRunbookHasEveryRule(t *testing.T) {
	runbook := read(t, "docs/operations.md")
	var want, got []string
	for _, r := range decide.Rules() {
		if want = append(want, r.Name); r.Name == decide.LockedElsewhere {
			want = append(want, approval.Rule)
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(runbook, -1) {
		got = append(got, heading[1])
		_, section, _ := strings.Cut(runbook, heading[0]+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !labelled.MatchString(section) {
			t.Errorf("docs/operations.md: %s lacks a line that begins with Symptom, Meaning, What Quorate does or What to do, in this order", heading[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/operations.md has\n%q, want\n%q", got, want)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	flagged = regexp.MustCompile(`--[a-z][-a-z]*`)
)

var (
	testDeclared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed    = regexp.MustCompile("(scenario )?`(Test\\w+)`")
)

// requireTests fails unless a page names at least the given number of tests, and each of them exists where the page
// says it does.
func requireTests(t *testing.T, page string, least int) {
	t.Helper()
	there := map[bool]map[string]bool{true: {}, false: {}}
	eachFile(t, func(path, content string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, match := range testDeclared.FindAllStringSubmatch(content, -1) {
			there[strings.Contains(path, "sandbox/scenarios")][match[1]] = true
		}
	}, ".go")
	named := testNamed.FindAllStringSubmatch(read(t, page), -1)
	if len(named) < least {
		t.Errorf("%s names %d tests", page, len(named))
	}
	for _, match := range named {
		if !there[match[1] != ""][match[2]] {
			t.Errorf("%s: no %s%s", page, match[1], match[2])
		}
	}
}

// TestThreatModelNamesExistingTests checks that every test named in the threat model exists where the page says it
// does.
func TestThreatModelNamesExistingTests(t *testing.T) {
	requireTests(t, "docs/explanation/threat-model.md", 30)
}

var (
	caseEntry   = regexp.MustCompile(`(?m)^### H(\d+)$`)
	caseMention = regexp.MustCompile(`[Hh]ard cases?[\s/#]+H\d+(?:(?:,|\s+to|\s+and)[\s/#]+H\d+)*`) // may continue on the next line of a comment
	caseNumber  = regexp.MustCompile(`(\bto[\s/#]+)?H(\d+)`)
)

// TestHardCasesPageIsComplete checks that the page on hard cases has one entry for each referenced case, and that every
// test named on the page exists.
func TestHardCasesPageIsComplete(t *testing.T) {
	const page = "docs/explanation/hard-cases.md"
	requireTests(t, page, 90)
	entries := map[int]bool{}
	for _, entry := range caseEntry.FindAllString(read(t, page), -1) {
		n := casesIn(t, entry)[0]
		if entries[n] {
			t.Errorf("%s has H%d twice", page, n)
		}
		entries[n] = true
	}
	mentions := 0
	eachFile(t, func(path, content string) {
		for _, mention := range caseMention.FindAllString(content, -1) {
			mentions++
			for _, n := range casesIn(t, mention) {
				if !entries[n] {
					t.Errorf("%s contains %q, but %s has no H%d", path, mention, page, n)
				}
			}
		}
	}, ".go", ".md", ".txt")
	if mentions < 70 {
		t.Errorf("hard cases are mentioned %d times", mentions)
	}
}

// casesIn returns the numbers of the cases that a text mentions, such as 2, 4 and 5 for "H2, H4 to H5".
func casesIn(t *testing.T, text string) []int {
	t.Helper()
	var list []int
	for _, number := range caseNumber.FindAllStringSubmatch(text, -1) {
		last, err := strconv.Atoi(number[2])
		if err != nil {
			t.Fatal(err)
		}
		first := last
		if number[1] != "" && len(list) > 0 {
			first = list[len(list)-1] + 1
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	return list
}

// TestIndexHasEveryPage checks that the index links to every page.
func TestIndexHasEveryPage(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		inDocs, found := strings.CutPrefix(page, "docs/")
		if found && inDocs != "README.md" && !strings.Contains(index, "]("+inDocs+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// TestDocumentationLinksAreValid checks that links within the repository are valid.
func TestDocumentationLinksAreValid(t *testing.T) {
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			path, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
				t.Errorf("%s: %s has no target", page, match[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s has no matching heading", page, match[1])
			}
		}
	}
}

func anchors(t *testing.T, page string) []string {
	t.Helper()
	var list []string
	for _, h := range heading.FindAllStringSubmatch(read(t, page), -1) {
		words := strings.Map(func(r rune) rune {
			if strings.ContainsRune("`.,:'()[]", r) {
				return -1
			}
			return r
		}, strings.ToLower(h[1]))
		list = append(list, strings.ReplaceAll(words, " ", "-"))
	}
	return list
}

// TestPagesUseFlagsThatExist checks that command lines in the docs use only existing flags.
func TestPagesUseFlagsThatExist(t *testing.T) {
	for _, page := range pages(t) {
		for _, line := range strings.Split(read(t, page), "\n") {
			_, after, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "quorate ")
			fields := strings.Fields(after)
			if !found || len(fields) == 0 {
				continue
			}
			command, _, err := newRoot(streams{}).Find(fields[:min(2, len(fields))])
			if err != nil || !command.HasParent() {
				continue // prose
			}
			own, ofRun, _ := strings.Cut(strings.SplitN(after, "`", 2)[0], " -- ")
			for c, text := range map[*cobra.Command]string{command: own, newRun(streams{}): ofRun} {
				for _, name := range flagged.FindAllString(text, -1) {
					if !hasFlag(c, name) {
						t.Errorf("%s: quorate %s has no flag %s: %s", page, c.Name(), name, line)
					}
				}
			}
		}
	}
}

func hasFlag(c *cobra.Command, name string) bool {
	found := false
	c.Flags().VisitAll(func(f *pflag.Flag) { found = found || "--"+f.Name == name })
	return found || name == "--help"
}

// TestReportPage checks that the example in docs/reference/report.md matches an actual report.
func TestReportPage(t *testing.T) {
	_, example, _ := strings.Cut(read(t, "docs/reference/report.md"), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	var got strings.Builder
	err := report.JSON(&got, report.Report{
		Revision: "main@sha1:607ee6319d77cd807258bb1457d152441639f0a4",
		Clusters: []report.Cluster{
			{
				Namespace: "default", Name: "a",
				Decision: decide.Decision{
					Rule: "Bootstrap", Verdict: decide.Act, Action: decide.Bootstrap{Replicas: 3},
					Message: "the cluster does not exist yet; bootstrapping 3 members of etcd 3.6.16",
				},
				Outcome:  &report.Outcome{Changed: true, Detail: "applied EtcdCluster a, ConfigMap a-members"},
				Warnings: []string{"a word about the declaration"},
			},
			{Namespace: "default", Name: "c", Error: "what could not be observed, done or reported"},
		},
		Problems: []report.Problem{{
			File: "clusters/b.yaml", Line: 7, Cluster: "default/b",
			Message: `spec.version: Invalid value: "3.6": an etcd version must be MAJOR.MINOR.PATCH, such as 3.6.5, without a leading v`,
		}},
		Warnings: []string{"https://git.example.com/shop.git,path=etcd declares no cluster"},
		Removals: []report.Removal{{
			Source: "https://git.example.com/shop.git,path=etcd", Revision: "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90",
			Clusters: []string{"shop/cart", "shop/orders"}, Of: 2,
		}},
		Error: "what concerns the pass as a whole",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != example {
		t.Errorf("docs/reference/report.md shows\n%s\nwant\n%s", example, got.String())
	}
}
