package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefuses checks that all problems that prevent a release are reported together, and that nothing is built.
func TestRefuses(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\n### Added\n\n- All.\n\n## [1.2.2] - 2026-01-01\n\n- Less.\n\n## [1.2.1]\n\n- No date.\n\n## [1.2.0] - 2026-01-01\n"
	for _, c := range []struct {
		version, tag, dirty string
		want                []string
	}{
		{"v1.2.3", "v1.2.3", "", nil},
		{"v1.2.3", "v1.2.3", "new.go", []string{"the tree is dirty", "?? new.go"}},
		{"v1.2.3", "v1.2.2", "", []string{"HEAD is not tagged v1.2.3: run git tag"}},
		{"v1.2.4", "v1.2.4", "", []string{`CHANGELOG.md does not describe v1.2.4: add a section "## [1.2.4] - 2023-11-14"`}},
		{"v1.2.1", "v1.2.1", "", []string{"CHANGELOG.md does not describe v1.2.1"}},
		{"v1.2.0", "v1.2.0", "", []string{"CHANGELOG.md does not describe v1.2.0"}},
		{"v1.2.4", "v1.2.3", "new.go", []string{"the tree is dirty", "HEAD is not tagged v1.2.4", "CHANGELOG.md does not describe v1.2.4"}},
		{"v1.2", "v1.2", "", []string{`"v1.2" is not a version`}},
		{"1.2.3", "1.2.3", "", []string{`"1.2.3" is not a version`}},
		{"853659b-dirty", "v1.2.3", "", []string{"is not a version such as v0.1.0"}},
		{"", "v1.2.3", "", []string{"is not a version such as v0.1.0"}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changelog), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GIT_COMMITTER_DATE", "1700000000 +0000")
		command(t, dir, "git", "init", "--quiet")
		command(t, dir, "git", "add", ".")
		command(t, dir, "git", "commit", "--quiet", "--message", "all")
		signer(t, dir)
		command(t, dir, "git", "tag", "--sign", "--message", c.tag, c.tag)
		if c.dirty != "" {
			if err := os.WriteFile(filepath.Join(dir, c.dirty), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := &release{version: c.version, root: dir, out: filepath.Join(dir, "out")}
		if c.want == nil {
			if err := r.check(t.Context()); err != nil || r.notes != "### Added\n\n- All.\n" || r.time.Unix() != 1700000000 || len(r.commit) != 40 {
				t.Errorf("%+v: %v; it is %+v", c, err, r)
			}
			continue
		}
		err := r.make(t.Context(), io.Discard)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c, err, want)
			}
		}
		if _, err := os.Stat(r.out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: something was made: %v", c, err)
		}
	}
}

// signer configures git in dir to sign with a new key and to trust that key.
func signer(t *testing.T, dir string) {
	t.Helper()
	keys := t.TempDir()
	command(t, keys, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "key")
	allowed := "a@example.com " + readFile(t, filepath.Join(keys, "key.pub"))
	if err := os.WriteFile(filepath.Join(keys, "allowed"), []byte(allowed), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"gpg.format": "ssh", "user.signingKey": filepath.Join(keys, "key"), "gpg.ssh.allowedSignersFile": filepath.Join(keys, "allowed"),
	} {
		command(t, dir, "git", "config", name, value)
	}
}

// TestTagIsVerified checks that a tag is rejected if it is not signed, is signed with an unknown key, or has the
// signature of a different tag.
func TestTagIsVerified(t *testing.T) {
	for name, make := range map[string]func(dir string){
		"lightweight": func(dir string) { command(t, dir, "git", "tag", "v1.2.3") },
		"unsigned":    func(dir string) { command(t, dir, "git", "tag", "--no-sign", "--message", "m", "v1.2.3") },
		"unknown key": func(dir string) {
			command(t, dir, "git", "tag", "--sign", "--message", "m", "v1.2.3")
			signer(t, dir)
		},
		"other tag": func(dir string) {
			command(t, dir, "git", "tag", "--sign", "--message", "m", "v1.2.2")
			command(t, dir, "git", "update-ref", "refs/tags/v1.2.3", "refs/tags/v1.2.2")
		},
		"signed": func(dir string) { command(t, dir, "git", "tag", "--sign", "--message", "m", "v1.2.3") },
	} {
		dir := t.TempDir()
		command(t, dir, "git", "init", "--quiet")
		signer(t, dir)
		command(t, dir, "git", "commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message", "all")
		make(dir)
		r := &release{version: "v1.2.3", root: dir}
		err := r.checkTag(t.Context())
		if (err == nil) != (name == "signed") || err != nil && !strings.Contains(err.Error(), "the signature of the tag v1.2.3 cannot be verified: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusesIgnored checks that files that git ignores are rejected, because they would be compiled or packaged. Build
// output is an exception.
func TestRefusesIgnored(t *testing.T) {
	dir := t.TempDir()
	command(t, dir, "git", "init", "--quiet")
	for name, text := range map[string]string{
		".git/info/exclude": "*~\nbin\n.idea\n", "deploy/chart/templates/rbac.yaml~": "", "bin/quorate": "", "deploy/.idea/a": "", ".idea/b": "",
	} {
		file := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r := &release{root: dir}
	const want = `delete "deploy/chart/templates/rbac.yaml~": git ignores it, but it may end up in the release`
	if err := r.checkTree(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
