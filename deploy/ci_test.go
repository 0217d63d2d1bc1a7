package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPipelineFiles: each file for a CI system is YAML; what a shell gets from it is a script, and has nothing in it that
// the CI system puts there, which could be of a pull request.
func TestPipelineFiles(t *testing.T) {
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

// scriptsOf are the values of run and script.
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

// stage is a directory in which programs that a script calls are stood in for.
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

// program stands in for one that notes its arguments, a line each, and does something.
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

// run runs a script, and returns its exit code and what was called.
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

// TestGitHubAction: the action ends as quorate does, with its text in the log, and says what the digest of the plan is.
func TestGitHubAction(t *testing.T) {
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

// TestGitHubComment: the comment that is there is changed, and one is made if there is none.
func TestGitHubComment(t *testing.T) {
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

// TestGitLabComment: so it is there, and the token is no argument, which others on the machine could see.
func TestGitLabComment(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("the script needs jq")
	}
	s := newStage(t, "CI_API_V4_URL=https://git.example.com/api/v4", "CI_PROJECT_ID=5", "CI_MERGE_REQUEST_IID=7", "QUORATE_COMMENT_TOKEN=not-a-secret")
	s.file("c.md", "<!-- quorate plan -->\n\"text\"\n")
	const notes = "https://git.example.com/api/v4/projects/5/merge_requests/7/notes"
	for answer, want := range map[string]string{
		`[{"id": 1, "system": true, "body": "<!-- quorate plan -->"}, {"id": 2, "system": false, "body": "x"}]`: "POST\n",
		`[{"id": 41, "system": false, "author": {"id": 3}, "body": "<!-- quorate plan -->\nold"}]`:              "PUT\n",
		// Somebody else has written it, and could change afterwards what it says.
		`[{"id": 40, "system": false, "author": {"id": 4}, "body": "<!-- quorate plan -->\nmine"}]`:                                                                              "POST\n",
		`[{"id": 40, "system": false, "author": {"id": 4}, "body": "<!-- quorate plan -->"}, {"id": 41, "system": false, "author": {"id": 3}, "body": "<!-- quorate plan -->"}]`: "PUT\n",
	} {
		s.program("curl", `config=$(cat); [ "$config" = 'header = "PRIVATE-TOKEN: not-a-secret"' ] || exit 9
case "$*" in *--request*) cat c.md.json >sent;; */api/v4/user) echo '{"id": 3}';; *) echo '`+answer+`';; esac`)
		code, out, calls := s.run("ci/gitlab/comment.sh", "c.md")
		target := notes
		if want == "PUT\n" {
			target += "/41"
		}
		if code != 0 || !strings.Contains(calls, "--request\n"+want) || !strings.HasSuffix(calls, "\n"+target+"\n") || strings.Contains(calls, "not-a-secret") {
			t.Errorf("%d %s\n%s", code, out, calls)
		}
		if sent, err := os.ReadFile(filepath.Join(s.dir, "sent")); err != nil || !strings.Contains(string(sent), `\"text\"`) {
			t.Errorf("%v: %s", err, sent)
		}
	}
}
