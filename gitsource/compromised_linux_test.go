package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
)

// takenOverAs is a prefix of an environment variable that makes the fetcher act as if compromised. The rest of the
// value names the attack. The variable is no_proxy, one of the few that the fetcher receives.
const takenOverAs = "taken-over:"

// Package variables are initialized before init functions run, so this replaces the real fetcher with a hostile one if
// the environment requests it. Both are confined in the same way.
var _ = func() bool {
	what, is := strings.CutPrefix(os.Getenv("no_proxy"), takenOverAs)
	if is {
		confined.ServeReaching(childName, prepare, func(parent *confined.Parent, task json.RawMessage) {
			h := hostile{parent: parent, at: "main", commit: strings.Repeat("b", 40)}
			what, h.argument, _ = strings.Cut(what, "=")
			_ = json.Unmarshal(task, &h.job)
			parent.Tell(h.does()[what]())
		})
	}
	return is
}()

// hostile is a compromised fetcher.
type hostile struct {
	parent     *confined.Parent
	job        job
	argument   string
	at, commit string
}

// takeOver makes fetchers that are started during the test act as if compromised.
func takeOver(t *testing.T, what string) {
	t.Helper()
	t.Setenv("no_proxy", takenOverAs+what)
}

// elsewhere is a source on a server that is never contacted.
var elsewhere = Options{Location: "https://git.example.com/x.git", Timeout: 20 * time.Second}

func (h hostile) does() map[string]func() message {
	return map[string]func() message{
		"show":   h.show,
		"fail":   func() message { return failed(h.argument) },
		"memory": h.takeMemory,
		"fill":   h.fill,
		"spin":   func() message { spin(); return message{} },
		"wait":   func() message { select {} },
		"change": h.change,
		"read":   h.readOthers,
	}
}

// show presents one file, regardless of the source.
func (h hostile) show() message {
	content := gittest.ClusterNamed("forged")
	if h.argument == "large" {
		content = "# " + strings.Repeat("x", 3<<20) + "\n" + content
	}
	r := refs.Revision{Name: h.at, Commit: h.commit}
	if h.job.Options.Selector.Commit != "" {
		r.Name = ""
	}
	next := message{Opened: &r}
	for {
		var q question
		h.parent.Ask(next, &q)
		var a manifests.Answer
		switch {
		case q.Ended || q.Failed:
			return message{Found: &r}
		case q.List != "":
			_ = json.Unmarshal([]byte(`{"Entries":[{"Name":"a.yaml","Type":0}]}`), &a)
		case q.Kind != "":
			a.Kind = os.ModeDir
		default:
			a.Content = []byte(content)
		}
		next = message{Answer: &a}
	}
}

func failed(text string) message { return message{Failed: &failure{Text: text}} }

// takeMemory allocates one gibibyte.
func (h hostile) takeMemory() message {
	page, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return failed("refused")
	}
	for i := 0; i < len(page); i += os.Getpagesize() {
		page[i] = 1
	}
	return failed("has a gibibyte")
}

// fill writes to a file beyond the size limit, and makes its directory hard to remove.
func (h hostile) fill() message {
	dir := os.Getenv("TMPDIR")
	_ = unix.Mkdir(filepath.Join(dir, "closed"), 0)
	file, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		return failed(err.Error())
	}
	if _, err = file.WriteAt([]byte("x"), 2<<30); !errors.Is(err, unix.EFBIG) {
		return failed("could write a file of two gibibytes")
	}
	_ = unix.Fchmodat(unix.AT_FDCWD, dir, 0, 0)
	return failed("refused")
}

func spin() {
	for n := 0; ; n++ {
		runtime.KeepAlive(n)
	}
}

// change tries to change the mode and times of files, which does not require opening them.
func (h hostile) change() message {
	for name := range strings.SplitSeq(h.argument, ";") {
		_ = unix.Fchmodat(unix.AT_FDCWD, name, 0o666, 0)
		_ = unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{{}, {}}, 0)
		if fd, err := unix.Open(name, unix.O_RDONLY, 0); err == nil {
			_ = unix.Fchmod(fd, 0o666)
			_ = unix.Close(fd)
		}
	}
	return failed("tried")
}

// readOthers tries to read the files listed in the argument.
func (h hostile) readOthers() message {
	for name := range strings.SplitSeq(h.argument, ";") {
		if content, err := os.ReadFile(name); err == nil {
			return failed("has read " + string(content))
		}
	}
	return failed("refused")
}

// TestCompromisedFetcherIsResourceLimited checks that a compromised fetcher cannot exceed its limits on memory, file
// size and processor time.
func TestCompromisedFetcherIsResourceLimited(t *testing.T) {
	o := elsewhere
	o.Memory = 64 << 20
	for what, want := range map[string]string{"memory": "refused", "fill": "refused"} {
		takeOver(t, what)
		if _, err := Fetch(t.Context(), o); !errors.Is(err, ErrSource) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
}

// TestCompromisedFetcherCannotChangeFiles checks that the seccomp filter prevents the fetcher from changing the mode
// and times of files, even files that it may read. Landlock does not restrict such changes.
func TestCompromisedFetcherCannotChangeFiles(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{gittest.MustWrite(t, filepath.Join(dir, "kubeconfig"), "x"), gittest.MustWrite(t, filepath.Join(source, "a.yaml"), "x"), source}
	state := func() (state []string) {
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			state = append(state, info.Mode().String()+info.ModTime().String())
		}
		return state
	}
	for _, o := range []Options{elsewhere, {Location: source}} {
		before := state()
		takeOver(t, "change="+strings.Join(names, ";"))
		if _, err := Fetch(t.Context(), o); err == nil || !strings.HasSuffix(err.Error(), "tried") {
			t.Errorf("error %v", err)
		}
		if after := state(); !slices.Equal(after, before) {
			t.Errorf("%s: files are %q, and were %q", o.Location, after, before)
		}
	}
}

// TestCompromisedFetcherErrorsAreContained checks that error messages of a compromised fetcher are always attributed to
// its source, and never match ErrOptions.
func TestCompromisedFetcherErrorsAreContained(t *testing.T) {
	about := "the source cannot be read: read https://git.example.com/x.git: "
	for said, want := range map[string]string{
		"the server is down":                                          about + "the server is down",
		"the options for the source are not valid: x":                 about + "the options for the source are not valid: x",
		"read https://git.example.com/bank.git: x":                    about + "read https://git.example.com/bank.git: x",
		"read it or leave it of https://git.example.com/x.git: x":     about + "read it or leave it of https://git.example.com/x.git: x",
		"https://git.example.com/x.gitanjali: x":                      about + "https://git.example.com/x.gitanjali: x",
		"\x1b[31mred\n::error::x ##vso[task.setvariable]":             about + `\x1b[31mred ::error::x # #vso[task.setvariable]`,
		strings.Repeat("x", 1<<20):                                    about + strings.Repeat("x", 1<<10) + " …",
		"fetch https://git.example.com/x.git: the proxy is away":      "the source cannot be read: fetch https://git.example.com/x.git: the proxy is away",
		"https://git.example.com/x.git is not reached":                "the source cannot be read: https://git.example.com/x.git is not reached",
		"read main@sha1:12 of https://git.example.com/x.git: too bad": "the source cannot be read: read main@sha1:12 of https://git.example.com/x.git: too bad",
	} {
		c := conversation{ctx: t.Context(), options: elsewhere}
		line, err := json.Marshal(map[string]any{"Failed": map[string]any{"Text": said, "Kinds": []bool{true, true, true, true, true, true}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, done, err := c.onMessage(line); !done || err != nil {
			t.Errorf("%v, %v", done, err)
		}
		if err := c.told(c.last.Failed); err.Error() != want || !errors.Is(err, ErrSource) || errors.Is(err, ErrOptions) {
			t.Errorf("%.100q: error %.200s, want %.200s", said, err, want)
		}
	}
	takeOver(t, "fail=evil")
	if _, err := Fetch(t.Context(), elsewhere); fmt.Sprint(err) != about+"evil" {
		t.Errorf("error %v", err)
	}
}

// TestCompromisedFetcherCannotSwapCommit checks that a compromised fetcher cannot present a commit that was not
// requested, or a file over the size limit.
func TestCompromisedFetcherCannotSwapCommit(t *testing.T) {
	takeOver(t, "show")
	o := elsewhere
	wantClusters(t, fetched(t, new(Reader), o), "forged")
	o.Selector.Commit = strings.Repeat("b", 40)
	wantClusters(t, fetched(t, new(Reader), o), "forged")
	o.Selector.Commit = strings.Repeat("a", 40)
	wantError(t, o, ErrSource, "invalid response from the fetch process: the opened revision does not match the commit aaaa")
	takeOver(t, "show=large")
	wantError(t, elsewhere, ErrSource, "invalid response from the fetch process: it contains a file of 3145")
}
