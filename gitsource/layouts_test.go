package gitsource

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// layouts lists the layouts in which git stores a repository. Each function creates one from r, which declares the
// cluster a, and returns its location.
var layouts = map[string]func(t *testing.T, r *repository) string{
	"bare":                 cloned("--bare"),
	"mirror":               cloned("--mirror"),
	"shallow":              cloned("--depth=1"),
	"single branch":        cloned("--single-branch"),
	"without checkout":     cloned("--no-checkout"),
	"sparse clone":         cloned("--sparse"),
	"shared":               cloned("--shared"),
	"shared, bare":         cloned("--shared", "--bare"),
	"dissociated":          func(t *testing.T, r *repository) string { return cloned("--reference", r.Dir, "--dissociate")(t, r) },
	"partial, complete":    cloned("--filter=blob:limit=1m"),
	"partial, checked out": cloned("--filter=blob:none"),
	"borrowing": func(t *testing.T, r *repository) string {
		dir := cloned("--reference", r.Dir)(t, r)
		return dir
	},
	"borrowing from a borrower": func(t *testing.T, r *repository) string {
		middle, dir := &repository{&gittest.Repository{T: t, Dir: cloned("--shared")(t, r)}}, t.TempDir()
		middle.Git("clone", "--quiet", "--shared", middle.Dir, dir)
		return dir
	},
	"relative alternates": func(t *testing.T, r *repository) string {
		dir := cloned("--shared")(t, r)
		relative, err := filepath.Rel(filepath.Join(dir, ".git", "objects"), filepath.Join(r.Dir, ".git", "objects"))
		if err != nil {
			t.Fatal(err)
		}
		gittest.MustWrite(t, filepath.Join(dir, ".git", "objects", "info", "alternates"), "# a comment\n\n"+relative+"\n")
		return dir
	},
	"quoted alternates": func(t *testing.T, r *repository) string {
		dir, odd := cloned("--shared")(t, r), filepath.Join(t.TempDir(), "with\ttab")
		r.Git("clone", "--quiet", "--bare", r.Dir, odd)
		quoted := strings.ReplaceAll(odd, "\t", `\t`)
		gittest.MustWrite(t, filepath.Join(dir, ".git", "objects", "info", "alternates"), `"`+quoted+`/objects"`+"\n")
		return dir
	},
	"sparse": func(t *testing.T, r *repository) string {
		dir := cloned()(t, r)
		in(t, dir).Git("sparse-checkout", "set", "nowhere")
		return dir
	},
	"ignored by another": func(t *testing.T, r *repository) string {
		outer := in(t, cloned()(t, r))
		gittest.MustWrite(t, filepath.Join(outer.Dir, ".gitignore"), "bin\n")
		dir := filepath.Join(outer.Dir, "bin", "inner.git")
		r.Git("clone", "--quiet", "--bare", r.Dir, dir)
		return dir
	},
	"ignored by a worktree": func(t *testing.T, r *repository) string {
		dir := filepath.Join(linked()(t, r), "inner.git")
		r.Git("clone", "--quiet", "--bare", r.Dir, dir)
		return dir
	},
	"worktree": linked(),
	"sparse worktree": func(t *testing.T, r *repository) string {
		dir := linked()(t, r)
		in(t, dir).Git("sparse-checkout", "set", "nowhere")
		return dir
	},
	"worktree of a bare repository": func(t *testing.T, r *repository) string {
		bare, dir := in(t, cloned("--bare")(t, r)), filepath.Join(t.TempDir(), "linked")
		bare.Git("worktree", "add", "--quiet", dir)
		return dir
	},
	"worktree of a shared clone": func(t *testing.T, r *repository) string {
		shared := in(t, cloned("--shared")(t, r))
		return linked()(t, &repository{shared})
	},
	"worktree with relative paths": func(t *testing.T, r *repository) string {
		dir := linked()(t, r)
		makeRelative(t, r.Dir, dir)
		return dir
	},
	"separate directory": func(t *testing.T, r *repository) string {
		dir := filepath.Join(t.TempDir(), "clone")
		r.Git("clone", "--quiet", "--separate-git-dir", filepath.Join(t.TempDir(), "elsewhere"), r.Dir, dir)
		in(t, dir).Git("config", "core.worktree", dir)
		return dir
	},
	"submodule": func(t *testing.T, r *repository) string {
		outer := newRepository(t)
		outer.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.Dir, "inner")
		return filepath.Join(outer.Dir, "inner")
	},
	"the .git itself": func(_ *testing.T, r *repository) string { return filepath.Join(r.Dir, ".git") },
	"packed": func(_ *testing.T, r *repository) string {
		r.Git("gc", "--quiet")
		r.Git("pack-refs", "--all")
		return r.Dir
	},
	"precious": func(_ *testing.T, r *repository) string {
		r.Git("config", "extensions.preciousObjects", "true")
		return r.Dir
	},
	"format 1": func(_ *testing.T, r *repository) string {
		for _, setting := range [][2]string{
			{"core.repositoryFormatVersion", "1"}, {"extensions.objectFormat", "sha1"}, {"extensions.worktreeConfig", "true"},
			{"extensions.noop", "1"}, {"extensions.noop-v1", "1"},
		} {
			r.Git("config", setting[0], setting[1])
		}
		return r.Dir
	},
	"format 1 of later gits": func(t *testing.T, r *repository) string {
		appendTo(t, filepath.Join(r.Dir, ".git", "config"), "[core]\nrepositoryformatversion = 1\n[extensions]\nrelativeWorktrees = true\nrefStorage = files\n")
		return r.Dir
	},
	"an extension that format 0 does not know": func(_ *testing.T, r *repository) string {
		r.Git("config", "extensions.invented", "true")
		return r.Dir
	},
	"settings of all sorts": func(_ *testing.T, r *repository) string {
		r.Git("config", "branch.main.rebase", "merges")
		r.Git("config", "branch.main.merge", "main")
		r.Git("config", "remote.nowhere.fetch", "+refs/*:refs/*")
		r.Git("config", "remote.x.fetch", "nonsense")
		r.Git("config", "alias.x", "!f() { echo \"$1; # \\ \"; }; f")
		r.Git("config", "include.path", "/nowhere")
		r.Git("config", "includeIf.gitdir:~/x/.path", "../nowhere")
		r.Git("config", "core.bare", "maybe")
		return r.Dir
	},
}

func in(t *testing.T, dir string) *gittest.Repository { return &gittest.Repository{T: t, Dir: dir} }

func cloned(args ...string) func(*testing.T, *repository) string {
	return func(t *testing.T, r *repository) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "clone")
		from := "file://" + r.Dir
		if strings.Contains(strings.Join(args, " "), "--shared") {
			from = r.Dir
		}
		r.Git("config", "uploadpack.allowFilter", "true")
		r.Git(append(append([]string{"clone", "--quiet"}, args...), from, dir)...)
		return dir
	}
}

func linked() func(*testing.T, *repository) string {
	return func(t *testing.T, r *repository) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "linked")
		r.Git("worktree", "add", "--quiet", "-b", "other", dir)
		return dir
	}
}

// makeRelative imitates git worktree add --relative-paths, which was added in git 2.48.
func makeRelative(t *testing.T, main, worktree string) {
	t.Helper()
	dot := filepath.Join(main, ".git", "worktrees", filepath.Base(worktree))
	for file, target := range map[string]string{filepath.Join(worktree, ".git"): dot, filepath.Join(dot, "gitdir"): filepath.Join(worktree, ".git")} {
		relative, err := filepath.Rel(filepath.Dir(file), target)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == ".git" {
			relative = "gitdir: " + relative
		}
		gittest.MustWrite(t, file, relative+"\n")
	}
	in(t, main).Git("config", "core.repositoryFormatVersion", "1")
	in(t, main).Git("config", "extensions.relativeWorktrees", "true")
}

func appendTo(t *testing.T, name, content string) {
	t.Helper()
	gittest.MustWrite(t, name, string(gittest.MustRead(t, name))+content)
}

func TestRepositoryLayoutsAreRead(t *testing.T) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.Write("apps/a.yaml", gittest.ClusterNamed("a"))
			r.Commit()
			desired, err := Fetch(t.Context(), Options{Location: layout(t, r), Options: manifests.Options{Path: "apps"}})
			if err != nil {
				t.Fatal(err)
			}
			wantClusters(t, desired, "a")
		})
	}
}

// TestUnreadableRepositoriesAreExplained checks that an unreadable repository is reported as a source error that names
// the cause, never as a problem with a file.
func TestUnreadableRepositoriesAreExplained(t *testing.T) {
	alternates := func(dir string) string { return filepath.Join(dir, ".git", "objects", "info", "alternates") }
	for name, c := range map[string]struct {
		make func(t *testing.T, r *repository) string
		path string
		want string
	}{
		"partial clone": {cloned("--filter=blob:none", "--no-checkout"), "apps",
			"of DIR: the object BLOB of apps/a.yaml is missing: it is a partial clone; to fetch the rest, run git fetch --refetch --no-filter"},
		"partial clone without directories": {cloned("--filter=tree:0", "--no-checkout"), "apps",
			"is missing: it is a partial clone; to fetch the rest, run git fetch --refetch --no-filter"},
		"partial clone and a kustomization": {func(t *testing.T, r *repository) string {
			r.Write("apps/kustomization.yaml", "resources: [a.yaml]\n")
			r.Commit()
			return cloned("--filter=blob:none", "--no-checkout")(t, r)
		}, "apps", "of apps/kustomization.yaml is missing: it is a partial clone"},
		"worktree of a partial clone": {func(t *testing.T, r *repository) string {
			partial, dir := in(t, cloned("--filter=blob:none", "--no-checkout")(t, r)), filepath.Join(t.TempDir(), "linked")
			partial.Git("worktree", "add", "--quiet", "--no-checkout", dir)
			return dir
		}, "apps", "it is a partial clone"},
		"sparse partial clone": {cloned("--filter=blob:none", "--sparse"), "apps", "of apps/a.yaml is missing: it is a partial clone"},
		"object lost": {func(_ *testing.T, r *repository) string {
			blob := r.Git("rev-parse", "HEAD:apps/a.yaml")
			if err := os.Remove(filepath.Join(r.Dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
				t.Fatal(err)
			}
			return r.Dir
		}, "apps", "of DIR: the object BLOB of apps/a.yaml is missing"},
		"commit that a shallow clone leaves out": {func(t *testing.T, r *repository) string {
			old := r.Git("rev-parse", "HEAD")
			r.Commit()
			dir := cloned("--depth=1")(t, r)
			in(t, dir).Git("update-ref", "--no-deref", "HEAD", "HEAD")
			gittest.MustWrite(t, filepath.Join(dir, ".git", "HEAD"), old+"\n")
			return dir
		}, "apps", "DIR does not have the commit COMMIT: it is a shallow clone; to fetch the rest, run git fetch --unshallow"},
		"borrowing from what is gone": {func(t *testing.T, r *repository) string {
			dir := cloned("--shared")(t, r)
			gittest.MustWrite(t, alternates(dir), "/nowhere/objects\n")
			return dir
		}, "apps", "does not have the commit COMMIT: DIR/.git/objects/info/alternates cannot be used: lstat /nowhere: no such file or directory"},
		"borrowing from what is not git's": {func(t *testing.T, r *repository) string {
			dir, other := cloned("--shared")(t, r), filepath.Join(t.TempDir(), "objects")
			r.Git("clone", "--quiet", "--bare", r.Dir, filepath.Join(t.TempDir(), "x"))
			if err := os.CopyFS(other, os.DirFS(filepath.Join(r.Dir, ".git", "objects"))); err != nil {
				t.Fatal(err)
			}
			gittest.MustWrite(t, alternates(dir), other+"\n")
			return dir
		}, "apps", "/objects is not the objects directory of a git repository"},
		"borrowing through a link": {func(t *testing.T, r *repository) string {
			dir, other := cloned("--shared")(t, r), t.TempDir()
			secret := filepath.Dir(gittest.MustWrite(t, filepath.Join(t.TempDir(), "token"), secret))
			gittest.MustWrite(t, filepath.Join(other, "HEAD"), "ref: refs/heads/main\n")
			for link, target := range map[string]string{"objects": secret, "refs": secret} {
				if err := os.Symlink(target, filepath.Join(other, link)); err != nil {
					t.Fatal(err)
				}
			}
			gittest.MustWrite(t, alternates(dir), other+"/objects\n")
			return dir
		}, "apps", "/objects is not the objects directory of a git repository"},
		"borrowing in a circle": {func(t *testing.T, r *repository) string {
			dir, other := cloned("--shared")(t, r), cloned("--bare")(t, r)
			in(t, other).Git("repack", "-a", "-d", "-q") // so that removing the packs below leaves it empty
			gittest.MustWrite(t, filepath.Join(other, "objects", "info", "alternates"), dir+"/.git/objects\n"+other+"/objects\n")
			gittest.MustWrite(t, alternates(dir), dir+"/.git/objects\n"+other+"/objects\n")
			packs, err := filepath.Glob(filepath.Join(other, "objects", "pack", "*"))
			for _, pack := range packs {
				err = errors.Join(err, os.Remove(pack))
			}
			if err != nil {
				t.Fatal(err)
			}
			return dir
		}, "apps", "DIR does not have the commit COMMIT"},
		"very many alternates": {func(t *testing.T, r *repository) string {
			dir, lines := cloned("--shared")(t, r), strings.Builder{}
			for range 101 {
				other := t.TempDir()
				gittest.MustWrite(t, filepath.Join(other, "HEAD"), "ref: refs/heads/main\n")
				if err := errors.Join(os.Mkdir(filepath.Join(other, "objects"), 0o700), os.Mkdir(filepath.Join(other, "refs"), 0o700)); err != nil {
					t.Fatal(err)
				}
				lines.WriteString(other + "/objects\n")
			}
			gittest.MustWrite(t, alternates(dir), lines.String())
			return dir
		}, "apps", "alternates names more than 100 directories"},
		"huge alternates": {func(t *testing.T, r *repository) string {
			dir := cloned("--shared")(t, r)
			appendTo(t, alternates(dir), strings.Repeat("/nowhere\n", 1<<20))
			return dir
		}, "apps", "DIR/.git/objects/info/alternates is larger than 64 KiB"},
		"alternates that are a link": {func(t *testing.T, r *repository) string {
			dir := cloned("--shared")(t, r)
			if err := errors.Join(os.Remove(alternates(dir)), os.Symlink("/etc/hosts", alternates(dir))); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "apps", "DIR/.git/objects/info/alternates is not a regular file"},
		"huge config": {func(t *testing.T, r *repository) string {
			appendTo(t, filepath.Join(r.Dir, ".git", "config"), strings.Repeat("#\n", 3<<20))
			return r.Dir
		}, "apps", "open the repository DIR: DIR/.git/config is larger than 4096 KiB"},
		"config with an error": {func(t *testing.T, r *repository) string {
			appendTo(t, filepath.Join(r.Dir, ".git", "config"), "[core\n")
			return r.Dir
		}, "apps", "open the repository DIR: DIR/.git/config: "},
		"extension that nobody knows": {func(t *testing.T, r *repository) string {
			appendTo(t, filepath.Join(r.Dir, ".git", "config"), "[core]\nrepositoryFormatVersion = 1\n[extensions]\ninvented = true\nworktreeConfig = true\n")
			return r.Dir
		}, "apps", `open the repository DIR: "extensions.invented" in its config is not supported`},
		"format 2": {func(_ *testing.T, r *repository) string {
			r.Git("config", "core.repositoryFormatVersion", "2")
			return r.Dir
		}, "apps", `core.repositoryFormatVersion is "2": only 0 and 1 are supported`},
		"reftable": {func(t *testing.T, r *repository) string { // the layout of git 2.45
			dot := filepath.Join(r.Dir, ".git")
			appendTo(t, filepath.Join(dot, "config"), "[core]\nrepositoryFormatVersion = 1\n[extensions]\nrefStorage = reftable\n")
			gittest.MustWrite(t, filepath.Join(dot, "HEAD"), "ref: refs/heads/.invalid\n")
			if err := os.RemoveAll(filepath.Join(dot, "refs", "heads")); err != nil {
				t.Fatal(err)
			}
			gittest.MustWrite(t, filepath.Join(dot, "refs", "heads"), "this repository uses the reftable format\n")
			return r.Dir
		}, "apps", `its references are stored as "reftable": only files are supported; to convert them, run git refs migrate --ref-format=files`},
		"worktree of a repository that was moved": {func(t *testing.T, r *repository) string {
			dir := linked()(t, r)
			if err := os.Rename(r.Dir, r.Dir+"-moved"); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "apps", "/linked, which is not a git directory; if the repository was moved, run git worktree repair"},
		".git that names nothing": {func(t *testing.T, _ *repository) string {
			dir := t.TempDir()
			gittest.MustWrite(t, filepath.Join(dir, ".git"), "something else\n")
			return dir
		}, "apps", "DIR/.git does not name a git directory"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.Write("apps/a.yaml", gittest.ClusterNamed("a"))
			r.Write("b.yaml", "b: b\n")
			commit := r.Commit()
			blob := r.Git("rev-parse", "HEAD:apps/a.yaml")
			dir := c.make(t, r)
			desired, err := Fetch(t.Context(), Options{Location: dir, Options: manifests.Options{Path: c.path}})
			if !errors.Is(err, ErrSource) || desired.Problems != nil {
				t.Fatalf("error %v, problems %v", err, desired.Problems)
			}
			got := strings.NewReplacer(dir, "DIR", commit, "COMMIT", blob, "BLOB").Replace(err.Error())
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestStrayFilesInRefsAreIgnored checks that files left below refs by other programs are not treated as references, and
// do not prevent the real references from being read.
func TestStrayFilesInRefsAreIgnored(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	heads := filepath.Join(r.Dir, ".git", "refs", "heads")
	for _, stray := range []string{"Icon\r", ".DS_Store", "main.lock", "desktop ini"} {
		gittest.MustWrite(t, filepath.Join(heads, stray), "")
	}
	gittest.MustWrite(t, filepath.Join(heads, "circle"), "ref: refs/heads/circle\n")
	wantClusters(t, fetched(t, new(Reader), Options{Location: r.Dir, Selector: refs.Selector{Branch: "main"}}), "a")
	// If a branch's file is empty, its older commit in packed-refs is not used.
	r.Git("pack-refs", "--all")
	gittest.MustWrite(t, filepath.Join(heads, "main"), "")
	wantError(t, Options{Location: r.Dir, Selector: refs.Selector{Branch: "main"}}, ErrSource, "ref file is empty")
}
