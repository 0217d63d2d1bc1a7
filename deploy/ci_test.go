package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPipelineFilesAreValid checks that each file for a CI system is valid YAML and contains only valid scripts. The
// scripts must not contain expressions that the CI system expands, because a pull request could control their values.
func TestPipelineFilesAreValid(t *testing.T) {
	files := []string{"../.pre-commit-hooks.yaml"}
	err := filepath.WalkDir("ci", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".yml") || strings.HasSuffix(path, ".yaml") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 6 {
		t.Fatalf("%v: %q", err, files)
	}
	scripts := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content any
		if err := yaml.Unmarshal(text, &content); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, script := range scriptsOf(content) {
			scripts++
			if strings.Contains(script, "${{") {
				t.Errorf("%s: the shell is given %s", file, script)
			}
			check := exec.Command("bash", "-n")
			check.Stdin = strings.NewReader(script)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", file, err, out, script)
			}
		}
	}
	if scripts < 8 {
		t.Errorf("only %d scripts were found", scripts)
	}
}

// scriptsOf returns the values of all run and script keys in content.
func scriptsOf(content any) (found []string) {
	switch content := content.(type) {
	case map[string]any:
		for key, value := range content {
			switch text, is := value.(string); {
			case is && key == "run":
				found = append(found, text)
			case key == "script":
				for _, line := range value.([]any) {
					found = append(found, line.(string))
				}
			default:
				found = append(found, scriptsOf(value)...)
			}
		}
	case []any:
		for _, value := range content {
			found = append(found, scriptsOf(value)...)
		}
	}
	return found
}

// stage is a directory with fake versions of the programs that a script calls.
type stage struct {
	*testing.T
	dir string
	env []string
}

func newStage(t *testing.T, env ...string) *stage {
	t.Helper()
	s := &stage{T: t, dir: t.TempDir()}
	s.env = append([]string{"PATH=" + s.dir + ":" + os.Getenv("PATH"), "RUNNER_TEMP=" + s.dir, "GITHUB_OUTPUT=" + s.dir + "/output", "CALLS=" + s.dir + "/calls"}, env...)
	return s
}

// program creates a fake program that records its arguments, one per line, and then runs a shell command.
func (s *stage) program(name, does string) {
	s.Helper()
	text := "#!/usr/bin/env bash\nprintf '%s\\n' " + name + " \"$@\" >>\"$CALLS\"\n" + does + "\n"
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) file(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// run runs a script and returns its exit code, its output and the recorded calls.
func (s *stage) run(script string, args ...string) (code int, out, calls string) {
	s.Helper()
	path, err := filepath.Abs(script)
	if err != nil {
		s.Fatal(err)
	}
	command := exec.Command("bash", append([]string{path}, args...)...)
	command.Env, command.Dir = s.env, s.dir
	text, _ := command.CombinedOutput()
	noted, _ := os.ReadFile(filepath.Join(s.dir, "calls"))
	_ = os.Remove(filepath.Join(s.dir, "calls"))
	return command.ProcessState.ExitCode(), string(text), string(noted)
}

// TestGitHubActionReturnsExitCodeAndDigest checks that the action exits with quorate's exit code, shows quorate's
// output in the log, and outputs the plan digest.
func TestGitHubActionReturnsExitCodeAndDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, code := range []int{0, 4} {
		s := newStage(t, "COMMAND=plan", "ARGS=--source=.\n\n--path=a b; $(touch hacked)\n")
		s.program("quorate", fmt.Sprintf("printf '%%s\\n' 'a road' 'plan %s' '1 cluster' >\"$RUNNER_TEMP/quorate.txt\"; exit %d", digest, code))
		got, out, calls := s.run("ci/github/quorate.sh")
		want := "quorate\nplan\n--source=.\n--path=a b; $(touch hacked)\n-o\ntext=" + s.dir + "/quorate.txt\n-o\ngithub=/dev/stderr\n-o\nmarkdown=" + s.dir + "/quorate.md\n"
		if got != code || !strings.Contains(out, "a road\n") || calls != want {
			t.Errorf("%d %s\n%s", got, out, calls)
		}
		if said, err := os.ReadFile(filepath.Join(s.dir, "output")); err != nil || string(said) != fmt.Sprintf("exit-code=%d\ndigest=%s\n", code, digest) {
			t.Errorf("%v %s", err, said)
		}
	}
	s := newStage(t, "COMMAND=validate", "ARGS=")
	s.program("quorate", "exit 3")
	if code, _, _ := s.run("ci/github/quorate.sh"); code != 3 {
		t.Errorf("without a report it ends with %d", code)
	}
}

// TestGitHubCommentIsUpdatedOrCreated checks that an existing comment is updated, and that a new comment is created if
// there is none.
func TestGitHubCommentIsUpdatedOrCreated(t *testing.T) {
	s := newStage(t, "COMMENTS=repos/o/r/issues/7/comments", "COMMENT=repos/o/r/issues/comments")
	if code, _, calls := s.run("ci/github/comment.sh"); code != 0 || calls != "" {
		t.Errorf("with nothing to say: %d %s", code, calls)
	}
	s.file("quorate.md", "<!-- quorate plan -->\ntext\n")
	for id, want := range map[string]string{
		"":   "--method\nPOST\nrepos/o/r/issues/7/comments\n-F\nbody=@" + s.dir + "/quorate.md\n",
		"41": "--method\nPATCH\nrepos/o/r/issues/comments/41\n-F\nbody=@" + s.dir + "/quorate.md\n",
	} {
		s.program("gh", `if [ "$2" = --paginate ]; then [ "$FIRST" = "<!-- quorate plan -->" ] && printf '%s' '`+id+`'; fi; exit 0`)
		if code, out, calls := s.run("ci/github/comment.sh"); code != 0 || !strings.HasSuffix(calls, want) {
			t.Errorf("%q: %d %s\n%s", id, code, out, calls)
		}
	}
}

// TestPipelinesPinActionsByCommit checks that pipelines do not run an action by its tag, which can be moved, or an
// action from the pull request. It also checks that users who can start a Task or Workflow cannot choose its image or
// command.
func TestPipelinesPinActionsByCommit(t *testing.T) {
	remote, pinned := regexp.MustCompile(`(?m)^ *(?:- )?uses: *([^.\s]\S*)`), regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	parameters := regexp.MustCompile(`(?m)^ *(params|parameters):|\$\(params|\{\{`)
	found := 0
	for _, root := range []string{"ci", "../docs"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, action := range remote.FindAllStringSubmatch(string(text), -1) {
				if found++; !pinned.MatchString(action[1]) {
					t.Errorf("%s uses %s, which names no commit", path, action[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 3 {
		t.Errorf("only %d actions were found", found)
	}
	check, _, _ := strings.Cut(read(t, "ci/github/workflow.yml"), "\n  run:")
	const base = "ref: ${{ github.event.pull_request.base.sha }}\n          path: base\n"
	if strings.Contains(check, "uses: ./.github") || !strings.Contains(check, base) || strings.Count(check, "uses: ./base/.github/") != 2 {
		t.Errorf("the job of pull requests runs their own action:\n%s", check)
	}
	for _, file := range []string{"ci/tekton/task.yaml", "ci/argo-workflows/workflow-template.yaml"} {
		text := read(t, file)
		if parameters.MatchString(text) || !strings.Contains(text, "command: [/usr/local/bin/quorate]") || !strings.Contains(text, "args: [run,") {
			t.Errorf("%s has parameters, or no command of its own", file)
		}
	}
	if text := read(t, "ci/gitlab/quorate.gitlab-ci.yml"); strings.Contains(text, "TOKEN") {
		t.Errorf("jobs of merge requests have a token:\n%s", text)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
