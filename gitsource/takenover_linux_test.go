package gitsource

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
)

// takenOverAs says in the environment of the process that fetches what it does once it is taken over: no_proxy is one of few variables that it has.
const takenOverAs = "taken-over:"

// Package variables are initialized before init functions run, so this takes the place of the real process where the environment says so. It is
// confined just as the real one is.
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

// hostile is a process that somebody has taken over.
type hostile struct {
	parent     *confined.Parent
	job        job
	argument   string
	at, commit string
}

// takeOver has the processes do that which are started during the test.
func takeOver(t *testing.T, what string) {
	t.Helper()
	t.Setenv("no_proxy", takenOverAs+what)
}

// elsewhere is a source on a server that is not asked anything.
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

// show shows one file, whatever the source was to be.
func (h hostile) show() message {
	content := clusterNamed("forged")
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

func failed(text string) message { return message{Failed: failureOf(sourceErrorf("%s", text))} }

// takeMemory takes a gibibyte.
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

// fill writes one file until that is refused, and makes its directory hard to remove.
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

// change tries to change the mode and the times of files, which need not be opened for that.
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

// readOthers tries to read files.
func (h hostile) readOthers() message {
	for name := range strings.SplitSeq(h.argument, ";") {
		if content, err := os.ReadFile(name); err == nil {
			return failed("has read " + string(content))
		}
	}
	return failed("refused")
}

// A process that is taken over takes no more of the machine than its part: memory, the size of a file, processor time.
func TestTakenOverTakesItsPart(t *testing.T) {
	o := elsewhere
	o.Memory = 64 << 20
	for what, want := range map[string]string{"memory": "refused", "fill": "refused"} {
		takeOver(t, what)
		if _, err := Fetch(t.Context(), o); !errors.Is(err, ErrSource) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
}

// Landlock does not govern the mode and the times of files: the filter is what keeps a process from changing those of others, whatever it may read.
func TestTakenOverChangesNoFiles(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{mustWrite(t, filepath.Join(dir, "kubeconfig"), "x"), mustWrite(t, filepath.Join(source, "a.yaml"), "x"), source}
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
