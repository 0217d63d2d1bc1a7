package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// runbook holds the commands in docs/how-to/recover-from-a-disaster.md. They are run verbatim, except that names are
// replaced with the test's namespaces, store, repository and image.
type runbook struct {
	w  *world
	s3 *s3Inside
	// sections maps each heading to the code blocks of its section.
	sections map[string][]runbookBlock
	// names replaces the page's names with the test's.
	names *strings.Replacer
	// system is the namespace of the CronJob quorate.
	system string
	// work is the directory in which a reader follows the page: a clone of the repository.
	work string
}

type runbookBlock struct{ language, text string }

var (
	runbookSection = regexp.MustCompile(`(?m)^## (.*)$`)
	runbookFence   = regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```")
)

// runbookBackup is the backup that the page chooses.
const runbookBackup = "20261122t180000z"

// openRunbook reads the page, and creates the CronJob quorate that the page mentions. The CronJob never runs.
func (w *world) openRunbook(s3 *s3Inside) *runbook {
	w.t.Helper()
	page, err := os.ReadFile(filepath.Join(root(), "docs", "how-to", "recover-from-a-disaster.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	b := &runbook{w: w, s3: s3, sections: map[string][]runbookBlock{}, system: w.namespace + "-system", work: w.repository.work}
	headings := runbookSection.FindAllStringSubmatchIndex(string(page), -1)
	for i, at := range headings {
		end := len(page)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		heading := string(page[at[2]:at[3]])
		for _, block := range runbookFence.FindAllStringSubmatch(string(page[at[1]:end]), -1) {
			b.sections[heading] = append(b.sections[heading], runbookBlock{block[1], block[2]})
		}
	}
	w.kubectl("create", "namespace", b.system)
	w.t.Cleanup(func() { _, _ = w.tryKubectl("delete", "namespace", b.system, "--wait=false") })
	w.kubectl("--namespace", b.system, "create", "cronjob", "quorate", "--image="+deployedImage, "--schedule=0 0 1 1 *", "--", "quorate", "run")
	b.name(runbookBackup)
	return b
}

// name sets the replacements for this test and the given backup.
func (b *runbook) name(backup string) {
	b.names = strings.NewReplacer(
		"quorate-system", b.system,
		"prod/a", b.w.namespace+"/a",
		"-n prod", "-n "+b.w.namespace,
		"namespace prod", "namespace "+b.w.namespace,
		"AWS_ACCESS_KEY_ID=…", "AWS_ACCESS_KEY_ID="+s3User,
		"AWS_SECRET_ACCESS_KEY=…", "AWS_SECRET_ACCESS_KEY="+s3Secret,
		"region: eu-central-1}", fmt.Sprintf("region: us-east-1, endpoint: %q, pathStyle: true, caSecretName: s3-ca}", b.s3.endpoint),
		"--allow-backup-destination s3://backups/etcd", "--allow-backup-destination s3://backups/etcd@"+b.s3.endpoint,
		"registry.example.com/quorate:dev", deployedImage,
		"https://git.example.com/fleet.git", b.w.repository.bare,
		runbookBackup, backup,
	)
}

// follow runs the commands of a section and returns their output.
func (b *runbook) follow(heading string) string {
	b.w.t.Helper()
	var commands []string
	for _, block := range b.sections[heading] {
		if block.language == "sh" {
			commands = append(commands, b.names.Replace(block.text))
		}
	}
	if len(commands) == 0 {
		b.w.t.Fatalf("the runbook has no commands in %q", heading)
	}
	file := filepath.Join(b.w.t.TempDir(), "follow.sh")
	if err := os.WriteFile(file, []byte(b.preamble()+strings.Join(commands, "\n")+"\n"), 0o600); err != nil {
		b.w.t.Fatal(err)
	}
	command := exec.Command(binary("sandbox"), "exec", "--name", b.w.name, "--", "bash", file)
	command.Dir = b.work
	command.Env = append(os.Environ(), b.s3.environment()...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	failed := slices.DeleteFunc(strings.Split(stderr.String(), "\n"), func(line string) bool {
		// The page says that existing namespaces are left unchanged.
		return !strings.HasPrefix(line, runbookFailure) || strings.Contains(line, "kubectl create namespace")
	})
	if len(failed) > 0 {
		b.w.t.Fatalf("%s: %v: %s\n%s\n%s", heading, err, strings.Join(failed, "\n"), out, end(stderr.String()))
	}
	return string(out)
}

// runbookFailure is the prefix that marks a failed command in the output.
const runbookFailure = "failed: "

// preamble sets up a reader's environment: the programs, a git identity, and the flags that the store requires.
// Passes are limited to this namespace, because other tests run clusters at the same time.
func (b *runbook) preamble() string {
	return fmt.Sprintf(`export HOME=%[1]s GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=push.autoSetupRemote GIT_CONFIG_VALUE_0=true
export GIT_AUTHOR_NAME=you GIT_AUTHOR_EMAIL=you@example.com GIT_COMMITTER_NAME=you GIT_COMMITTER_EMAIL=you@example.com
set -E
trap 'echo "%[2]s$BASH_COMMAND" >&2' ERR
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
echo identity > identity.txt
quorate() {
  case $1 in
    run) %[3]s "$@" --namespace %[4]s %[7]s ;;
    status | validate) %[3]s "$@" --namespace %[4]s ;;
    backups) %[3]s "$@" --s3-region us-east-1 --s3-endpoint %[5]s --s3-path-style --s3-ca-file %[6]s ;;
    *) %[3]s "$@" ;;
  esac
}
`, b.w.t.TempDir(), runbookFailure, binary("quorate"), b.w.namespace, b.s3.endpoint, b.s3.ca, setting("etcd.timeout", "20s"))
}

// chooseBackup follows the page's second section and chooses the newest verified backup of the lost cluster.
func (b *runbook) chooseBackup(lost string) {
	b.w.t.Helper()
	chosen := ""
	for line := range strings.Lines(b.follow("2. Choose the backup")) {
		fields := strings.Fields(line)
		if len(fields) == 5 && strings.TrimLeft(fields[2], "0") == lost && (fields[4] == "verified" || fields[4] == "drilled") {
			chosen = fields[1]
		}
	}
	if chosen == "" {
		b.w.t.Fatalf("the store has no verified backup of cluster %s", lost)
	}
	b.name(chosen)
}

// declare follows the page's fourth section, adding its lines to the declaration of the cluster.
func (b *runbook) declare(version string, spec ...string) {
	b.w.t.Helper()
	const heading = "4. Declare it"
	var added []string
	for _, block := range b.sections[heading] {
		if block.language == "yaml" {
			for line := range strings.Lines(b.names.Replace(strings.TrimPrefix(block.text, "spec:\n"))) {
				added = append(added, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
			}
		}
	}
	text := declaration("a", version, append(spec, added...)...)
	if err := os.WriteFile(filepath.Join(b.work, "a.yaml"), []byte(text), 0o600); err != nil {
		b.w.t.Fatal(err)
	}
	b.follow(heading)
}
