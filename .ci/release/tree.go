package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// check reports all problems that prevent a release, and determines the commit.
func (r *release) check(ctx context.Context) error {
	if semver.Canonical(r.version) != r.version || r.version == "" {
		return fmt.Errorf("%q is not a version such as v0.1.0: tag the commit or check out the tag, "+
			"then run make release VERSION=v0.1.0", r.version)
	}
	if err := r.learn(ctx); err != nil {
		return err
	}
	var err error
	r.notes, err = r.section()
	return errors.Join(err, r.checkTree(ctx), r.checkTag(ctx))
}

// learn reads the commit and its time from git.
func (r *release) learn(ctx context.Context) error {
	said, err := r.git(ctx, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(said, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	r.commit, r.time = commit, time.Unix(at, 0).UTC()
	return nil
}

func (r *release) checkTree(ctx context.Context) error {
	changed, err := r.git(ctx, "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("the tree is dirty: commit, stash or delete\n%s", changed)
	}
	if err != nil {
		return err
	}
	return r.checkIgnored(ctx)
}

// checkIgnored rejects files that git ignores, for example because of the user's own settings. Go would still compile
// and embed such files, and Helm would package them. Files whose names start with a dot are not affected.
func (r *release) checkIgnored(ctx context.Context) error {
	ignored, err := r.git(ctx, "ls-files", "--others", "-z", "--", ".", ":(top,exclude)bin", ":(top,exclude)quorate")
	if err != nil {
		return err
	}
	var problems error
	for _, name := range strings.Split(strings.TrimSuffix(ignored, "\x00"), "\x00") {
		if name != "" && !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.") {
			problems = errors.Join(problems, fmt.Errorf(
				"delete %q: git ignores it, but it may end up in the release", name))
		}
	}
	return problems
}

// checkTag requires a tag, which Go records in the programs. It verifies the signature of the tag with the keys that
// git trusts. The signed name must be the version, because a signed tag object can be stored under a different name.
func (r *release) checkTag(ctx context.Context) error {
	tagged, err := r.git(ctx, "tag", "--points-at", "HEAD", "--list", r.version)
	if err != nil {
		return err
	}
	if tagged == "" {
		return fmt.Errorf("HEAD is not tagged %s: run git tag --sign %s --message %s, and push the tag after "+
			"publishing the release", r.version, r.version, r.version)
	}
	signed, err := r.git(ctx, "verify-tag", "--format=%(tag)", "refs/tags/"+r.version)
	if err == nil && signed != r.version {
		err = fmt.Errorf("the signature is for the tag %q", signed)
	}
	if err != nil {
		return fmt.Errorf("the signature of the tag %s cannot be verified: %w; sign it with git tag --sign, and give "+
			"git the public key, with gpg --import or gpg.ssh.allowedSignersFile", r.version, err)
	}
	return nil
}

// section returns the changelog section for this version.
func (r *release) section() (string, error) {
	const file = "CHANGELOG.md"
	text, err := os.ReadFile(filepath.Join(r.root, file))
	if err != nil {
		return "", fmt.Errorf("read the changelog: %w", err)
	}
	number := strings.TrimPrefix(r.version, "v")
	start := "## [" + number + "] - "
	var lines []string
	in := false
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") {
			in = strings.HasPrefix(line, start)
			if _, err := time.Parse(time.DateOnly, strings.TrimPrefix(line, start)); in && err != nil {
				return "", fmt.Errorf("%s: %q: expected a date: %w", file, line, err)
			}
		} else if in {
			lines = append(lines, line)
		}
	}
	section := strings.TrimSpace(strings.Join(lines, "\n"))
	if section == "" {
		return "", fmt.Errorf("%s does not describe %s: add a section \"%s%s\" with the changes that users notice",
			file, r.version, start, r.time.Format(time.DateOnly))
	}
	return section + "\n", nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", args...)
	git.Dir = r.root
	said, err := git.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(said)), nil
}
