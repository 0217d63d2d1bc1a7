package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configs holds config files as git and users write them.
var configs = map[string]string{
	"git clone":     "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n[remote \"origin\"]\n\turl = https://x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[extensions]\n\tpartialClone = origin\n",
	"CRLF":          "[core]\r\n\trepositoryformatversion = 1\r\n[extensions]\r\n\tworktreeConfig = true\r\n",
	"cases":         "[CORE]\nRepositoryFormatVersion=1\n[Extensions]\nWorktreeConfig = true\n",
	"comments":      "# x\n; y\n[core] # z\nrepositoryformatversion = 1 ; why\n[extensions] ; w\nworktreeConfig = true # q\n",
	"quotes":        "[core]\nrepositoryformatversion = \"1\"\n[extensions]\nobjectFormat = \"sh\"a1\n",
	"aliases":       "[alias]\n\tx = \"!f() { echo \\\"$1; # \\\\ \\\"; }; f\"\n\ty = a\\\n  b\n[core]\nrepositoryformatversion = 1\n",
	"no value":      "[core]\nbare\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig\n",
	"twice":         "[core]\nrepositoryformatversion = 0\n[core]\nrepositoryformatversion = 1\n",
	"subsections":   "[branch \"a \\\"b\\\" ]\"]\n\tremote = .\n[includeIf \"gitdir:~/x/\"]\n\tpath = y\n[core \"x\"]\nrepositoryformatversion = 7\n[core]\nrepositoryformatversion = 1\n",
	"Latin-1":       "[user]\n\tname = caf\xe9\n[core]\nrepositoryformatversion = 1\n",
	"byte order":    "\xef\xbb\xbf[core]\nrepositoryformatversion = 1\n",
	"empty":         "",
	"no last line":  "[core]\nrepositoryformatversion = 1",
	"tabs":          "[core]\n\trepositoryformatversion\t=\t1\t\n",
	"section names": "[git-p4]\nx = 1\n[lfs \"https://x/info/lfs\"]\n\taccess = basic\n[core]\nrepositoryformatversion = 1\n",
	"url":           "[url \"git@x:\"]\n\tinsteadOf = https://x/\n[core]\nrepositoryformatversion = 1\n",
}

func TestFormatMatchesGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for name, content := range configs {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readFormat(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for key, value := range map[string]string{"core.repositoryFormatVersion": got.version, "extensions.worktreeConfig": got.extensions["worktreeconfig"], "extensions.objectFormat": got.extensions["objectformat"]} {
			out, _ := exec.CommandContext(t.Context(), "git", "config", "--file", file, key).Output()
			want := strings.TrimSpace(string(out))
			if key == "core.repositoryFormatVersion" && want == "" {
				want = "0"
			}
			if value != want {
				t.Errorf("%s: %s is %q, git reads %q", name, key, value, want)
			}
		}
	}
}

// TestLargeConfigIsReadInTime checks that the largest config is read within five seconds.
func TestLargeConfigIsReadInTime(t *testing.T) {
	for _, part := range []string{"[branch \"x\"]\n", "[a]\nx=" + strings.Repeat("y", 1000) + "\n", "[extensions]\nx\n"} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(strings.Repeat(part, maxConfigBytes/len(part))), 0o600); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if _, err := readFormat(file); err != nil || time.Since(before) > 5*time.Second {
			t.Errorf("%.20s: %s, %v", part, time.Since(before), err)
		}
	}
}
