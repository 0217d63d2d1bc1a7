package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

const thiefName = "quorate-test-thief"

// The thief is confined like the fetcher, and tries what a compromised fetcher would try.
func init() {
	confined.ServeReaching(thiefName, func(json.RawMessage) {}, func(parent *confined.Parent, task json.RawMessage) {
		var s scene
		if err := json.Unmarshal(task, &s); err != nil {
			panic(err)
		}
		parent.Tell(s.had())
	})
}

// scene lists the thief's targets.
type scene struct {
	// The thief tries to read Files, and to create files in Dirs.
	Files, Dirs []string
	// Victim is another process of the same user.
	Victim int
}

// had returns the targets that the thief could access.
func (s scene) had() []string {
	had := []string{}
	try := func(what string, attempt func() error) {
		if attempt() == nil {
			had = append(had, what)
		}
	}
	for _, name := range s.Files {
		try(name, func() error { return readOne(name) })
	}
	for _, dir := range s.Dirs {
		try("list "+dir, func() error { _, err := os.ReadDir(dir); return err })
		try("make a file in "+dir, func() error {
			file, err := os.CreateTemp(dir, "made-*")
			if err != nil {
				return err
			}
			return errors.Join(file.Close(), os.Remove(file.Name()))
		})
	}
	for _, part := range []string{"environ", "mem", "cmdline", "fd", "root/etc"} {
		try(part+" of another process", func() error { return openOne(fmt.Sprintf("/proc/%d/%s", s.Victim, part)) })
	}
	try("run a program", func() error { return exec.Command("/proc/self/exe", "-test.run=^$").Run() })
	try("signal", func() error { return unix.Kill(s.Victim, 0) })
	try("pidfd", func() error { return closing(unix.PidfdOpen(s.Victim, 0)) })
	try("own a descriptor", func() error { _, err := unix.FcntlInt(1, unix.F_SETOWN, s.Victim); return err })
	try("read memory", func() error {
		_, err := unix.ProcessVMReadv(s.Victim, nil, nil, 0)
		return err
	})
	try("local socket", func() error { return closing(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)) })
	try("connect", func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) })
	try("wait for others", func() error {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Listen(socket, 1), unix.Close(socket))
	})
	return had
}

func readOne(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err = file.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func openOne(name string) error {
	file, err := os.Open(name)
	return errors.Join(err, file.Close())
}

func closing(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// stolen returns the targets that a process confined like the fetcher of the source can access.
func stolen(t *testing.T, o Options, s scene) (had []string) {
	t.Helper()
	t.Setenv("QUORATE_GIT_PASSWORD", secret)
	reach, environment, remove := reachFor(o, os.Environ())
	defer func() { _ = remove() }()
	if strings.Contains(fmt.Sprint(environment), secret) {
		t.Errorf("its environment is %q", environment)
	}
	err := confined.RunReaching(t.Context(), thiefName, s, limitsFor(o), reach, environment, func(line []byte) (any, bool, error) {
		return nil, true, json.Unmarshal(line, &had)
	})
	if err != nil {
		t.Fatal(err)
	}
	return had
}

// TestHelperThief is run in a separate process by TestCompromisedFetcherReachesOnlyItsSource.
func TestHelperThief(t *testing.T) {
	var s scene
	if json.Unmarshal([]byte(os.Getenv("QUORATE_TEST_SCENE")), &s) != nil {
		t.Skip("it is a part of another test")
	}
	fmt.Fprintf(os.Stdout, "{{%s}}", strings.Join(s.had(), "\n"))
}

// TestCompromisedFetcherReachesOnlyItsSource checks that a compromised fetcher can access only its own source, but not
// the run's token, its kubeconfig, other credentials or the memory of other processes.
func TestCompromisedFetcherReachesOnlyItsSource(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		return gittest.MustWrite(t, name, "x")
	}
	r := newRepository(t)
	head := r.Declare("a")
	linked, shared := filepath.Join(t.TempDir(), "linked"), filepath.Join(t.TempDir(), "shared")
	r.Git("worktree", "add", "--quiet", "-b", "other", linked)
	r.Git("clone", "--quiet", "--shared", r.Dir, shared)
	cacheDir := cacheDir(t)
	if err := os.Mkdir(cacheDir, 0o700); err != nil {
		t.Fatal(err)
	}
	token, known, local := file("serviceaccount/token"), file("own/known_hosts"), filepath.Join(r.Dir, ".git", "HEAD")
	object := filepath.Join(r.Dir, ".git", "objects", head[:2], head[2:])
	s := scene{
		Files:  []string{token, file("kube/config"), file("others/password"), file("own/identity"), known, local, object, "/etc/hosts", "/etc/passwd"},
		Dirs:   []string{dir, cacheDir, os.TempDir()},
		Victim: os.Getpid(),
	}
	cached := []string{"list " + cacheDir, "make a file in " + cacheDir}
	cases := map[string]struct {
		o    Options
		want []string
	}{
		"https":            {Options{Location: "https://git.example.com/x.git"}, []string{"/etc/hosts", "connect"}},
		"https, cached":    {Options{Location: "https://git.example.com/x.git", CacheDir: cacheDir}, append([]string{"/etc/hosts", "connect"}, cached...)},
		"ssh":              {Options{Location: "git@git.example.com:x.git", Auth: remote.Auth{KnownHosts: known}}, []string{"/etc/hosts", "connect", known}},
		"repository":       {Options{Location: r.Dir}, []string{local, object}},
		"worktree":         {Options{Location: linked}, []string{local, object}},
		"shared clone":     {Options{Location: shared}, []string{object}},
		"directory":        {Options{Location: t.TempDir()}, nil},
		"a lying .git":     {Options{Location: lying(t, filepath.Dir(token))}, nil},
		"a lying worktree": {Options{Location: lying(t, lyingCommon(t, filepath.Dir(token)))}, nil},
		"a lying borrower": {Options{Location: lyingBorrower(t, filepath.Dir(token))}, nil},
	}
	if version, err := landlock.LandlockGetABIVersion(); err != nil || version < 1 {
		t.Skipf("the kernel has no Landlock: %v", err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := stolen(t, c.o, s)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("it had\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	// Without confinement, all targets are accessible.
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperThief$")
	cmd.Env = append(os.Environ(), "QUORATE_TEST_SCENE="+string(encoded))
	out, err := cmd.CombinedOutput()
	_, text, _ := strings.Cut(string(out), "{{")
	text, _, _ = strings.Cut(text, "}}")
	if had := strings.Count(text, "\n") + 1; err != nil || had != len(s.Files)+2*len(s.Dirs)+13 {
		t.Errorf("the test would not notice: %v, %d of %s", err, had, out)
	}
}

// lying creates a directory with a .git file that names another directory.
func lying(t *testing.T, named string) string {
	t.Helper()
	dir := t.TempDir()
	gittest.MustWrite(t, filepath.Join(dir, ".git"), "gitdir: "+named+"\n")
	return dir
}

// lyingCommon creates a git directory of a linked worktree with a commondir that names another directory.
func lyingCommon(t *testing.T, named string) string {
	t.Helper()
	dir := t.TempDir()
	gittest.MustWrite(t, filepath.Join(dir, "HEAD"), "ref: refs/heads/main\n")
	gittest.MustWrite(t, filepath.Join(dir, "commondir"), named+"\n")
	return dir
}

// lyingBorrower creates a repository whose alternates file names a directory that is not a git directory, both directly
// and through a symlink.
func lyingBorrower(t *testing.T, named string) string {
	t.Helper()
	r, linked := newRepository(t), t.TempDir()
	gittest.MustWrite(t, filepath.Join(linked, "HEAD"), "ref: refs/heads/main\n")
	if err := errors.Join(os.Symlink(named, filepath.Join(linked, "objects")), os.Mkdir(filepath.Join(linked, "refs"), 0o700)); err != nil {
		t.Fatal(err)
	}
	gittest.MustWrite(t, filepath.Join(r.Dir, ".git", "objects", "info", "alternates"), named+"\n"+linked+"/objects\n")
	return r.Dir
}

// TestFetcherMustOpenRequestedRevision checks that the fetcher can open only the requested revision.
func TestFetcherMustOpenRequestedRevision(t *testing.T) {
	hash := strings.Repeat("a", 40)
	revision := func(name, signer string) refs.Revision {
		return refs.Revision{Name: name, Commit: hash, Signer: signer}
	}
	for _, c := range []struct {
		what     string
		o        Options
		opened   refs.Revision
		believed bool
	}{
		{"HEAD", Options{}, revision("main", ""), true},
		{"HEAD without a name", Options{}, revision("", ""), true},
		{"HEAD that is no name", Options{}, revision("ma in", ""), false},
		{"an escape", Options{}, revision("a\x1b[31m", ""), false},
		{"no commit", Options{}, refs.Revision{Name: "main", Commit: "HEAD"}, false},
		{"a directory on a server", Options{}, refs.Revision{}, false},
		{"branch", Options{Selector: refs.Selector{Branch: "main"}}, revision("main", ""), true},
		{"another branch", Options{Selector: refs.Selector{Branch: "main"}}, revision("other", ""), false},
		{"no branch", Options{Selector: refs.Selector{Branch: "main"}}, revision("", ""), false},
		{"version", Options{Selector: refs.Selector{SemVer: "~1"}}, revision("v1.2.0", ""), true},
		{"another version", Options{Selector: refs.Selector{SemVer: "~1"}}, revision("v2.0.0", ""), false},
		{"full name", Options{Selector: refs.Selector{Name: "refs/pull/1/head"}}, revision("refs/pull/1/head", ""), true},
		{"another full name", Options{Selector: refs.Selector{Name: "refs/pull/1/head"}}, revision("refs/pull/2/head", ""), false},
		{"commit", Options{Selector: refs.Selector{Commit: hash}}, revision("", ""), true},
		{"commit with a name", Options{Selector: refs.Selector{Commit: hash}}, revision("main", ""), false},
		{"a signer, and nothing is verified", Options{}, revision("main", "x"), false},
		{"signed", Options{Verify: Verification{Mode: "commit"}}, revision("main", "x"), true},
		{"not signed", Options{Verify: Verification{Mode: "commit"}}, revision("main", ""), false},
		{"signed in colour", Options{Verify: Verification{Mode: "commit"}}, revision("main", "\x1b[32mx"), false},
		{"signed by many", Options{Verify: Verification{Mode: "commit"}}, revision("main", strings.Repeat("x", 1<<20)), false},
	} {
		c.o.Location = "https://git.example.com/x.git"
		if err := (&conversation{options: c.o}).check(c.opened); (err == nil) != c.believed {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if err := (&conversation{options: Options{Location: t.TempDir()}}).check(refs.Revision{}); err != nil {
		t.Error(err)
	}
	line, err := json.Marshal(message{Answer: nil, Found: &refs.Revision{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, done, err := (&conversation{}).onMessage(line); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if _, _, err := (&conversation{}).onMessage([]byte(`{"Answer":{}}`)); err == nil {
		t.Error("an answer without a question")
	}
}

// TestSymlinkedGitDirGivesNoAccess checks that a .git symlink does not give access to its target.
func TestSymlinkedGitDirGivesNoAccess(t *testing.T) {
	if version, err := landlock.LandlockGetABIVersion(); err != nil || version < 1 {
		t.Skipf("the kernel has no Landlock: %v", err)
	}
	dir := t.TempDir()
	token := gittest.MustWrite(t, filepath.Join(dir, "token"), secret)
	for _, target := range []string{dir, token} {
		source := t.TempDir()
		if err := os.Symlink(target, filepath.Join(source, ".git")); err != nil {
			t.Fatal(err)
		}
		takeOver(t, "read="+token)
		wantError(t, Options{Location: source}, ErrSource, "refused")
	}
}
