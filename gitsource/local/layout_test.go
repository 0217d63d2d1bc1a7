package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
)

// repositoryIn creates a repository with a commit in a new directory, with links resolved.
func repositoryIn(t *testing.T, name string) *gittest.Repository {
	t.Helper()
	r := gittest.NewRepository(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, name)
	r.Git("clone", "--quiet", r.Dir, dir)
	c := &gittest.Repository{T: t, Dir: dir}
	c.Git("config", "user.name", "test")
	c.Git("config", "user.email", "test@localhost")
	c.Git("commit", "--quiet", "--allow-empty", "--message", "x")
	return c
}

// write writes files below dir, by path.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		(&gittest.Repository{T: t, Dir: dir}).Write(path, content)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakeBare returns files that make a directory look like a bare repository.
func fakeBare(more map[string]string) map[string]string {
	files := map[string]string{"HEAD": "ref: refs/heads/main\n", "objects/.keep": "", "refs/.keep": ""}
	maps.Copy(files, more)
	return files
}

// TestFindRefusesForeignGitDirs checks that files from a commit or an archive cannot make Find return the git directory
// of another repository.
func TestFindRefusesForeignGitDirs(t *testing.T) {
	victim := repositoryIn(t, "victim")
	linked := filepath.Join(filepath.Dir(victim.Dir), "linked")
	victim.Git("worktree", "add", "--quiet", linked)
	separate := filepath.Join(filepath.Dir(victim.Dir), "bare.git")
	victim.Git("clone", "--quiet", "--bare", victim.Dir, separate)
	victim.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", separate, "inner")
	detached := filepath.Join(filepath.Dir(victim.Dir), "detached")
	victim.Git("clone", "--quiet", "--separate-git-dir", detached, victim.Dir, filepath.Join(filepath.Dir(victim.Dir), "its"))
	dot := filepath.Join(victim.Dir, ".git")
	for name, c := range map[string]struct {
		committed bool // whether the files are in a repository's worktree
		files     map[string]string
		want      string
	}{
		"committed bare repository":                   {true, fakeBare(nil), "the enclosing repository CLONE tracks it: "},
		"committed bare repository that borrows":      {true, fakeBare(map[string]string{"objects/info/alternates": dot + "/objects\n"}), "the enclosing repository CLONE tracks it: "},
		"committed bare repository with commondir":    {true, fakeBare(map[string]string{"commondir": dot + "\n"}), "is not the git directory of this worktree"},
		"committed bare repository with relative dir": {true, fakeBare(map[string]string{"commondir": "../../victim/.git\n"}), "is not the git directory of this worktree"},
		"committed worktree directory":                {true, map[string]string{"HEAD": "x\n", "commondir": dot + "\n"}, "is not the git directory of this worktree"},
		"committed worktree directory of a bare one":  {true, map[string]string{"HEAD": "x\n", "commondir": separate + "\n"}, "is not the git directory of this worktree"},
		"bare repository with commondir":              {false, fakeBare(map[string]string{"commondir": dot + "\n"}), "is not the git directory of this worktree"},
		".git with commondir":                         {false, map[string]string{".git/HEAD": "x\n", ".git/commondir": dot + "\n"}, "is not the git directory of this worktree"},
		".git names another's":                        {false, map[string]string{".git": "gitdir: " + dot + "\n"}, "does not refer back to this worktree"},
		".git names a bare repository":                {false, map[string]string{".git": "gitdir: " + separate + "\n"}, "does not refer back to this worktree"},
		".git names another's separate directory":     {false, map[string]string{".git": "gitdir: " + detached + "\n"}, "does not refer back to this worktree"},
		".git names another's worktree":               {false, map[string]string{".git": "gitdir: " + dot + "/worktrees/linked\n"}, "does not refer back to this worktree"},
		".git names another's submodule":              {false, map[string]string{".git": "gitdir: " + dot + "/modules/inner\n"}, "does not refer back to this worktree"},
		".git names a worktree of its own making": {false, map[string]string{
			".git": "gitdir: own\n", "own/HEAD": "x\n", "own/commondir": dot + "\n", "own/gitdir": "../.git\n",
		}, "is not the git directory of this worktree"},
	} {
		t.Run(name, func(t *testing.T) {
			clone, dir := "", filepath.Join(t.TempDir(), "clusters")
			if c.committed {
				clone = repositoryIn(t, "clone").Dir
				dir = filepath.Join(clone, "clusters")
			}
			write(t, dir, c.files)
			if c.committed {
				(&gittest.Repository{T: t, Dir: clone}).Git("add", ".")
			}
			link := filepath.Join(t.TempDir(), "link") // the link's path does not contain the parent directories
			if err := os.Symlink(dir, link); err != nil {
				t.Fatal(err)
			}
			for _, location := range []string{dir, link} {
				layout, err := Find(location)
				if want := strings.ReplaceAll(c.want, "CLONE", clone); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: layout %v, error %v, want %s", location, layout, err, want)
				}
			}
		})
	}
	t.Run(".git is a link", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink(dot, filepath.Join(dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if layout, err := Find(dir); err == nil {
			t.Errorf("layout %v", layout)
		}
	})
	t.Run("whether it is tracked is unknown", func(t *testing.T) {
		clone := repositoryIn(t, "clone").Dir
		dir := filepath.Join(clone, "clusters")
		write(t, dir, fakeBare(nil))
		write(t, clone, map[string]string{".git/index": "DIRC"})
		if layout, err := Find(dir); err == nil || !strings.Contains(err.Error(), "tracks it: read "+clone) {
			t.Errorf("layout %v, error %v", layout, err)
		}
	})
	t.Run("a committed directory is not a repository", func(t *testing.T) {
		dir := filepath.Join(repositoryIn(t, "clone").Dir, "clusters")
		write(t, dir, map[string]string{"HEAD": "x\n", "objects/.keep": "", "a.yaml": ""})
		if layout, err := Find(dir); !errors.Is(err, ErrNotRepository) {
			t.Errorf("layout %v, error %v", layout, err)
		}
	})
}

// TestFindRealLayouts checks that Find returns the git directory and the shared git directory of layouts that git and
// common tools create.
func TestFindRealLayouts(t *testing.T) {
	for name, create := range map[string]func(r *gittest.Repository, root string) (location, dir, common string){
		"repository": func(r *gittest.Repository, _ string) (string, string, string) {
			return r.Dir, r.Dir + "/.git", r.Dir + "/.git"
		},
		"its .git": func(r *gittest.Repository, _ string) (string, string, string) {
			return r.Dir + "/.git", r.Dir + "/.git", r.Dir + "/.git"
		},
		"bare, shared": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("clone", "--quiet", "--bare", "--shared", r.Dir, root+"/bare")
			return root + "/bare", root + "/bare", root + "/bare"
		},
		"repository inside a repository": func(r *gittest.Repository, _ string) (string, string, string) {
			r.Git("clone", "--quiet", r.Dir, r.Dir+"/sub/inner")
			return r.Dir + "/sub/inner", r.Dir + "/sub/inner/.git", r.Dir + "/sub/inner/.git"
		},
		"worktree": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("worktree", "add", "--quiet", root+"/linked")
			return root + "/linked", r.Dir + "/.git/worktrees/linked", r.Dir + "/.git"
		},
		"worktree through a link": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("worktree", "add", "--quiet", root+"/linked")
			must(r.T, os.Symlink("linked", root+"/current"))
			return root + "/current", r.Dir + "/.git/worktrees/linked", r.Dir + "/.git"
		},
		"worktree of a shared mirror": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("clone", "--quiet", "--mirror", "--shared", r.Dir, root+"/shared")
			shared := &gittest.Repository{T: r.T, Dir: root + "/shared"}
			shared.Git("worktree", "add", "--quiet", root+"/linked")
			return root + "/linked", root + "/shared/worktrees/linked", root + "/shared"
		},
		"git directory of a worktree": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("worktree", "add", "--quiet", root+"/linked")
			return r.Dir + "/.git/worktrees/linked", r.Dir + "/.git/worktrees/linked", r.Dir + "/.git"
		},
		"git-sync, mounted elsewhere": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("worktree", "add", "--quiet", r.Dir+"/.worktrees/abc")
			gittest.MustWrite(r.T, r.Dir+"/.worktrees/abc/.git", "gitdir: ../../.git/worktrees/abc\n")
			must(r.T, os.Rename(r.Dir, root+"/mounted"))
			return root + "/mounted/.worktrees/abc", root + "/mounted/.git/worktrees/abc", root + "/mounted/.git"
		},
		"separate git directory": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("clone", "--quiet", "--separate-git-dir", root+"/git", r.Dir, root+"/clone")
			(&gittest.Repository{T: r.T, Dir: root + "/clone"}).Git("config", "core.worktree", root+"/clone")
			return root + "/clone", root + "/git", root + "/git"
		},
		"worktree of a separate git directory": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("clone", "--quiet", "--separate-git-dir", root+"/git", r.Dir, root+"/clone")
			clone := &gittest.Repository{T: r.T, Dir: root + "/clone"}
			clone.Git("worktree", "add", "--quiet", root+"/linked")
			return root + "/linked", root + "/git/worktrees/linked", root + "/git"
		},
		"ignored bare repository in another": func(r *gittest.Repository, root string) (string, string, string) {
			outer := repositoryIn(t, "outer").Dir
			gittest.MustWrite(r.T, outer+"/.gitignore", "bin\n")
			r.Git("clone", "--quiet", "--bare", r.Dir, outer+"/bin/inner.git")
			return outer + "/bin/inner.git", outer + "/bin/inner.git", outer + "/bin/inner.git"
		},
		"bare repository below its worktrees": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("clone", "--quiet", "--bare", r.Dir, root+"/project/.bare")
			gittest.MustWrite(r.T, root+"/project/.git", "gitdir: ./.bare\n")
			return root + "/project", root + "/project/.bare", root + "/project/.bare"
		},
		"submodule": func(r *gittest.Repository, _ string) (string, string, string) {
			r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.Dir, "inner")
			return r.Dir + "/inner", r.Dir + "/.git/modules/inner", r.Dir + "/.git/modules/inner"
		},
		"sparse submodule": func(r *gittest.Repository, _ string) (string, string, string) {
			r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.Dir, "inner")
			inner := &gittest.Repository{T: r.T, Dir: r.Dir + "/inner"}
			inner.Git("sparse-checkout", "set", "nowhere")
			return r.Dir + "/inner", r.Dir + "/.git/modules/inner", r.Dir + "/.git/modules/inner"
		},
		"submodule of a worktree": func(r *gittest.Repository, root string) (string, string, string) {
			r.Git("worktree", "add", "--quiet", root+"/linked")
			linked := &gittest.Repository{T: r.T, Dir: root + "/linked"}
			linked.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.Dir, "inner")
			dir := r.Dir + "/.git/worktrees/linked/modules/inner"
			return root + "/linked/inner", dir, dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := repositoryIn(t, "main")
			location, dir, common := create(r, filepath.Dir(r.Dir))
			layout, err := Find(location)
			if got, want := fmt.Sprint(layout.Dir, " ", layout.Common), dir+" "+common; err != nil || got != want {
				t.Errorf("%s, error %v, want %s", got, err, want)
			}
		})
	}
}
