package signature

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// workshop creates signed commits and tags with the real tools: git, gpg and ssh-keygen.
type workshop struct {
	t *testing.T
	// repo is the repository. keys is a directory for public keys, one file each.
	repo, keys string
	gnupg      string
	cases      []testCase
	// commits counts the commits, so that all commits differ.
	commits int
}

// tool finds a program in QUORATE_TOOLS or PATH. If it is missing, the test is skipped.
func tool(t *testing.T, name string) string {
	t.Helper()
	if dir := os.Getenv("QUORATE_TOOLS"); dir != "" {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	found, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return found
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	// The socket path of gpg-agent is limited in length, and t.TempDir is too long.
	gnupg, err := os.MkdirTemp("", "gpg")
	if err != nil {
		t.Fatal(err)
	}
	w := &workshop{t: t, repo: t.TempDir(), keys: t.TempDir(), gnupg: gnupg}
	for _, name := range []string{"git", "gpg", "gpgconf", "ssh-keygen"} {
		tool(t, name)
	}
	t.Cleanup(func() {
		w.run("", "gpgconf", "--kill", "all")
		os.RemoveAll(gnupg)
	})
	w.git("init", "--quiet", "--initial-branch=main")
	return w
}

// run runs a program in the repository with the given input, and returns its output.
func (w *workshop) run(input, name string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(tool(w.t, name), args...) // without the test's context, because it also runs during cleanup
	cmd.Dir, cmd.Stdin = w.repo, strings.NewReader(input)
	cmd.Env = w.environment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return string(out)
}

func (w *workshop) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH") + ":" + os.Getenv("QUORATE_TOOLS"), "HOME=" + w.repo, "GNUPGHOME=" + w.gnupg, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "TZ=UTC",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-03-01T00:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-03-01T00:00:00Z",
	}
}

func (w *workshop) git(args ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.run("", "git", args...))
}

// gpg runs gpg with its clock stopped at a fake time, such as 20260101T000000.
func (w *workshop) gpg(when, input string, args ...string) string {
	w.t.Helper()
	return w.run(input, "gpg", append([]string{"--batch", "--quiet", "--no-tty", "--passphrase", "", "--pinentry-mode", "loopback", "--faked-system-time", when + "!"}, args...)...)
}

const (
	madeAt   = "20260101T000000"
	signedAt = "20260301T000000"
	// testNow is the time of verification, unless a case sets a different time.
	testNow = "2026-06-01T00:00:00Z"
)

func address(name string) string { return name + "@example.com" }

// pgpKey creates a PGP key and exports it as name.asc.
func (w *workshop) pgpKey(name, algorithm, expires string) {
	w.t.Helper()
	w.gpg(madeAt, "", "--quick-generate-key", name+" <"+address(name)+">", algorithm, "sign", expires)
	w.export(name)
}

func (w *workshop) fingerprint(name string) string {
	w.t.Helper()
	for line := range strings.Lines(w.gpg(signedAt, "", "--with-colons", "--list-keys", address(name))) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			return fields[9]
		}
	}
	w.t.Fatalf("no fingerprint of %s", name)
	return ""
}

func (w *workshop) export(name string) {
	w.t.Helper()
	w.put(name+".asc", w.gpg(signedAt, "", "--armor", "--export", address(name)))
}

func (w *workshop) put(file, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.keys, file), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// sshKey creates an SSH key and stores its public key as name.sshpub.
func (w *workshop) sshKey(name string, args ...string) {
	w.t.Helper()
	file := w.private(name)
	w.run("", "ssh-keygen", append([]string{"-q", "-N", "", "-C", address(name), "-f", file}, args...)...)
	w.put(name+".sshpub", w.read(file+".pub"))
}

func (w *workshop) private(name string) string { return filepath.Join(w.gnupg, name) }

func (w *workshop) read(file string) string {
	w.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

// as returns git settings for signing with a key. For gpg, a script sets the time and other options.
func (w *workshop) as(name string, gpgArgs ...string) []string {
	w.t.Helper()
	if _, err := os.Stat(w.private(name)); err == nil {
		return []string{"-c", "gpg.format=ssh", "-c", "gpg.ssh.program=" + tool(w.t, "ssh-keygen"), "-c", "user.signingkey=" + w.private(name)}
	}
	when := signedAt
	if len(gpgArgs) > 0 && strings.HasPrefix(gpgArgs[0], "20") {
		when, gpgArgs = gpgArgs[0], gpgArgs[1:]
	}
	script := filepath.Join(w.gnupg, "gpg.sh")
	text := "#!/bin/sh\nexec " + tool(w.t, "gpg") + " --batch --faked-system-time " + when + "! " + strings.Join(gpgArgs, " ") + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return []string{"-c", "gpg.program=" + script, "-c", "user.signingkey=" + address(name)}
}

// commit creates a commit, signed with a key or unsigned, and returns it as git stores it.
func (w *workshop) commit(name string, gpgArgs ...string) []byte {
	w.t.Helper()
	w.commits++
	args := []string{"commit", "--quiet", "--allow-empty", fmt.Sprintf("--message=Declare cluster %d", w.commits)}
	if name != "" {
		args = append(append(w.as(name, gpgArgs...), args...), "--gpg-sign")
	}
	w.git(args...)
	return w.raw("commit", "HEAD")
}

// tag creates an annotated tag of an object, signed with a key or unsigned.
func (w *workshop) tag(signer, name, of string) []byte {
	w.t.Helper()
	if signer == "" {
		w.git("tag", "--annotate", "--message=Release", name, of)
	} else {
		w.git(append(w.as(signer), "tag", "--sign", "--message=Release", name, of)...)
	}
	return w.raw("tag", name)
}

func (w *workshop) raw(kind, name string) []byte {
	w.t.Helper()
	return []byte(w.run("", "git", "cat-file", kind, name))
}

// gitAccepts asks git whether an object has a valid signature. Every SSH key of the workshop may sign.
func (w *workshop) gitAccepts(object string, isTag bool) bool {
	w.t.Helper()
	signers := ""
	for _, file := range w.files("*.sshpub") {
		signers += "* " + w.read(file)
	}
	list := filepath.Join(w.gnupg, "allowed_signers")
	if err := os.WriteFile(list, []byte(signers), 0o600); err != nil {
		w.t.Fatal(err)
	}
	kind := "commit"
	if isTag {
		kind = "tag"
	}
	hash := strings.TrimSpace(w.run(object, "git", "hash-object", "-t", kind, "-w", "--stdin"))
	settings := append(w.as("pgp", signedAt), "-c", "gpg.ssh.allowedSignersFile="+list, "-c", "gpg.ssh.program="+tool(w.t, "ssh-keygen"))
	cmd := exec.Command("git", append(settings, "verify-"+kind, hash)...)
	cmd.Dir, cmd.Env = w.repo, w.environment()
	return cmd.Run() == nil
}

func (w *workshop) files(pattern string) []string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.keys, pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

// withSignature adds a signature to an unsigned commit, where git puts it.
func withSignature(commit []byte, signature string) []byte {
	head, message, _ := bytes.Cut(commit, []byte("\n\n"))
	folded := strings.ReplaceAll(strings.TrimSuffix(signature, "\n"), "\n", "\n ")
	return slices.Concat(head, []byte("\ngpgsig "+folded+"\n\n"), message)
}

// testCase is an object, with the keys for its verification.
type testCase struct {
	name, about string
	object      []byte
	keys        []string
	now         string
	// tag is the requested tag name. It is empty for a commit.
	tag string
}

func (w *workshop) add(c testCase) { w.cases = append(w.cases, c) }

// archives returns the keys, and an archive for each case with its result.
func (w *workshop) archives() (keys *txtar.Archive, cases map[string]*txtar.Archive) {
	w.t.Helper()
	keys = &txtar.Archive{Comment: []byte("The public keys of the cases beside this, made with gpg and ssh-keygen.\n")}
	for _, file := range w.files("*") {
		keys.Files = append(keys.Files, txtar.File{Name: filepath.Base(file), Data: []byte(w.read(file))})
	}
	cases = map[string]*txtar.Archive{}
	for _, c := range w.cases {
		comment := c.about + "\n"
		for _, option := range [][2]string{{"keys", strings.Join(c.keys, " ")}, {"now", c.now}, {"tag", c.tag}} {
			if option[1] != "" {
				comment += option[0] + ": " + option[1] + "\n"
			}
		}
		cases[c.name] = &txtar.Archive{Comment: []byte(comment), Files: []txtar.File{{Name: "object", Data: c.object}}}
	}
	return keys, cases
}
