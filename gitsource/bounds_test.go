package gitsource

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/pack"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

// answers holds a server's responses for the newest commit: its reference list and its pack.
type answers struct{ list, pack []byte }

func (r *repository) answers() answers {
	r.T.Helper()
	var a answers
	git := r.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var body bytes.Buffer
		git.ServeHTTP(teeWriter{w, &body}, request)
		if request.Method == http.MethodPost {
			a.pack = body.Bytes()
		} else {
			a.list = body.Bytes()
		}
	}))
	defer server.Close()
	if _, err := Fetch(r.T.Context(), Options{Location: server.URL + "/.git"}); err != nil {
		r.T.Fatal(err)
	}
	return a
}

type teeWriter struct {
	http.ResponseWriter
	body *bytes.Buffer
}

func (t teeWriter) Write(p []byte) (int, error) {
	t.body.Write(p)
	return t.ResponseWriter.Write(p)
}

// serveAnswers serves a reference list and a pack, each written by a function.
func serveAnswers(t testing.TB, list, pack func(io.Writer, context.Context)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			pack(flushed{w}, r.Context())
			return
		}
		list(flushed{w}, r.Context())
	}))
	t.Cleanup(server.Close)
	return server.URL + "/x.git"
}

// flushed flushes after every write.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

func whole(body []byte) func(io.Writer, context.Context) {
	return func(w io.Writer, _ context.Context) { _, _ = w.Write(body) }
}

// stalled writes body, and then waits until the client disconnects.
func stalled(body []byte) func(io.Writer, context.Context) {
	return func(w io.Writer, ctx context.Context) {
		_, _ = w.Write(body)
		<-ctx.Done()
	}
}

// slowly writes one byte at a time, too slowly to finish before the deadline.
func slowly(body []byte) func(io.Writer, context.Context) {
	return func(w io.Writer, ctx context.Context) {
		for i := range body {
			if _, err := w.Write(body[i : i+1]); err != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// endless writes start once, and then the bytes of again until the client disconnects.
func endless(start, again []byte) func(io.Writer, context.Context) {
	return func(w io.Writer, ctx context.Context) {
		for _, err := w.Write(start); err == nil && ctx.Err() == nil; {
			_, err = w.Write(again)
		}
	}
}

func sidebandPacket(channel byte, content []byte) []byte {
	return fmt.Appendf(nil, "%04x%c%s", len(content)+5, channel, content)
}

func TestEndlessServerResponsesAreCutOff(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	good := r.answers()
	half := len(good.pack) / 2
	list, answer := whole(good.list), whole(good.pack)
	start := []byte("00000008NAK\n")
	noise := make([]byte, 60_000)
	_, _ = rand.Read(noise)
	blob := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xbf\xff\xff\xff\x7f\x78\x01\x00\xff\xff\x00\x00"), noise[:65535-5536]...)
	longRef := fmt.Sprintf("%s refs/heads/%s\n", strings.Repeat("b", 40), strings.Repeat("x", 60_000))
	for name, c := range map[string]struct {
		list, pack func(io.Writer, context.Context)
		want       string
	}{
		"list stalls":              {stalled(good.list[:len(good.list)/2]), answer, "timed out after 400ms; to allow more time, raise the source's timeout"},
		"list drips":               {slowly(good.list), answer, "timed out after 400ms"},
		"list has no end":          {endless(good.list[:len(good.list)-4], fmt.Appendf(nil, "%04x%s", len(longRef)+4, longRef)), answer, "the list of branches and tags is larger than 1 MiB; delete some, or raise limits.bytes"},
		"pack stalls at once":      {list, stalled(nil), "timed out after 400ms"},
		"pack stalls in the midst": {list, stalled(good.pack[:half]), "timed out after 400ms"},
		"pack stalls at its end":   {list, stalled(good.pack[:len(good.pack)-4]), "timed out after 400ms"},
		"pack drips":               {list, slowly(good.pack), "timed out after 400ms"},
		"pack has no end":          {list, endless(append(start, sidebandPacket(1, blob)...), sidebandPacket(1, noise)), "the response is larger than 1 MiB; declare clusters in a smaller repository, or raise limits.bytes"},
		"progress has no end":      {list, endless(start, sidebandPacket(2, noise)), "the response is larger than 1 MiB"},
		"keepalives have no end":   {list, endless(start, []byte("0005\x01")), "the response is larger than 1 MiB"},
		"shallows have no end":     {list, endless(nil, []byte("0034shallow "+strings.Repeat("a", 40))), "the response is larger than 1 MiB"},
		"pack is cut off":          {list, whole(good.pack[:half]), "the response was not truncated"},
		"pack is damaged":          {list, whole(append(append(bytes.Clone(good.pack[:len(good.pack)-30]), "abcdef"...), good.pack[len(good.pack)-24:]...)), "fetch http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Location: serveAnswers(t, c.list, c.pack), Timeout: 400 * time.Millisecond, Transfer: remote.Limits{RefsBytes: 1 << 20, PackBytes: 1 << 20}}
			if !strings.Contains(c.want, "400ms") {
				o.Timeout = 0
			}
			wantError(t, o, ErrSource, c.want)
			if _, err := Fetch(t.Context(), o); errors.Is(err, context.DeadlineExceeded) != (o.Timeout != 0) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestHangingFetchIsAbandoned checks that a function that ignores its context is abandoned.
func TestHangingFetchIsAbandoned(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	_, err := within(t.Context(), Options{Location: "x", Timeout: time.Millisecond}, func(context.Context) (int, error) {
		<-hang
		return 1, nil
	})
	want := "the source cannot be read: read x: timed out after 1ms; to allow more time, raise the source's timeout: context deadline exceeded"
	if !errors.Is(err, ErrSource) || !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestPackLimitsNameTheirFlags(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	r.Write("large.bin", strings.Repeat("0123456789abcdef", 1<<16))
	r.Commit()
	location := r.Serve()
	for want, limits := range map[string]remote.Limits{
		"the list of branches and tags is larger than 100 bytes; delete some, or raise limits.bytes":                            {RefsBytes: 100},
		"the response is larger than 200 bytes; declare clusters in a smaller repository, or raise limits.bytes":                {PackBytes: 200},
		"the pack has 4 objects, more than the maximum of 3; declare clusters in a smaller repository, or raise limits.objects": {Pack: pack.Limits{Objects: 3}},
		"the pack is larger than 512 KiB uncompressed; declare clusters in a smaller repository, or raise limits.bytes":         {Pack: pack.Limits{InflatedBytes: 512 << 10}},
	} {
		wantError(t, Options{Location: location, Transfer: limits}, ErrSource, "fetch "+location+": "+want)
	}
	wantClusters(t, fetched(t, new(Reader), Options{Location: location, Transfer: remote.Limits{Pack: pack.Limits{Objects: 4, ObjectBytes: 1 << 10}}}), "a")
}

// TestLargeFilesAreNotTransferred checks that a file over the size limit is not transferred if the server can filter it
// out. If the server cannot filter, the same problem is reported.
func TestLargeFilesAreNotTransferred(t *testing.T) {
	r := newRepository(t)
	noise := make([]byte, 3<<20)
	_, _ = rand.Read(noise)
	r.Write("unrelated.bin", string(noise))
	r.Write("apps/a.yaml", gittest.ClusterNamed("a"))
	r.Write("apps/large.yaml", string(noise))
	r.Commit()
	for _, filter := range []string{"false", "true"} {
		r.Git("config", "uploadpack.allowFilter", filter)
		location, seen := r.counted()
		for _, dir := range []string{"", cacheDir(t)} {
			desired := fetched(t, new(Reader), Options{Location: location, CacheDir: dir, Options: manifests.Options{Path: "apps"}})
			if len(desired.Clusters) != 1 || len(desired.Problems) != 1 || !strings.HasPrefix(desired.Problems[0].String(), "apps/large.yaml: is larger than 2 MiB") {
				t.Errorf("filter %s: clusters %v, problems %v", filter, desired.Clusters, desired.Problems)
			}
		}
		if large := seen.bytes.Load() > 1<<20; large != (filter == "false") {
			t.Errorf("filter %s: %d bytes crossed the network", filter, seen.bytes.Load())
		}
	}
}

// TestHostileReferenceNamesAreIgnored checks that hostile reference names are neither used as paths nor printed.
func TestHostileReferenceNamesAreIgnored(t *testing.T) {
	r := newRepository(t)
	commit := r.Declare("a")
	good := r.answers()
	for name, c := range map[string]struct{ symref, line, want string }{
		"HEAD with an escape":    {"refs/heads/\x1b[31m", "refs/heads/\x1b[31m", "sha1:" + commit},
		"HEAD with a line feed":  {"refs/heads/a\nb", "refs/heads/a\nb", "sha1:" + commit},
		"HEAD of another folder": {"../../x", "../../x", "sha1:" + commit},
		"HEAD of no reference":   {"refs/heads/x", "refs/heads/y", "sha1:" + commit},
		"HEAD of a branch":       {"refs/heads/x", "refs/heads/x", "x@sha1:" + commit},
	} {
		t.Run(name, func(t *testing.T) {
			first := commit + " HEAD\x00ofs-delta shallow side-band-64k symref=HEAD:" + c.symref + "\n"
			second := commit + " " + c.line + "\n"
			list := fmt.Sprintf("001e# service=git-upload-pack\n0000%04x%s%04x%s0000", len(first)+4, first, len(second)+4, second)
			desired, err := Fetch(t.Context(), Options{Location: serveAnswers(t, whole([]byte(list)), whole(good.pack))})
			if err != nil {
				t.Fatal(err)
			}
			if got := desired.Revision.String(); got != c.want {
				t.Errorf("revision %q, want %q", got, c.want)
			}
		})
	}
}

// manyReferences returns the reference list of a server with n additional branches.
func manyReferences(commit string, n int) []byte {
	var list bytes.Buffer
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		fmt.Fprintf(&list, "%04x%s", len(text)+4, text)
	}
	line("# service=git-upload-pack\n")
	list.WriteString("0000")
	line("%s HEAD\x00ofs-delta shallow side-band-64k no-progress symref=HEAD:refs/heads/main\n", commit)
	for i := range n {
		line("%s refs/heads/branch-%06d\n", strings.Repeat("b", 40), i)
	}
	line("%s refs/heads/main\n", commit)
	list.WriteString("0000")
	return list.Bytes()
}

func TestManyReferencesAreReadInTime(t *testing.T) {
	r := newRepository(t)
	commit := r.Declare("a")
	location := serveAnswers(t, whole(manyReferences(commit, 100_000)), whole(r.answers().pack))
	desired := fetched(t, new(Reader), Options{Location: location, Selector: refs.Selector{Branch: "main"}, Timeout: 20 * time.Second})
	wantClusters(t, desired, "a")
	wantError(t, Options{Location: location, Transfer: remote.Limits{RefsBytes: 4 << 20}}, ErrSource, "raise limits.bytes")
}

// TestEndlessDirectoriesAreBounded checks that nested directories that repeat the same subdirectory are not read to the
// end: ten entries at each of 40 levels give 10^40 paths.
func TestEndlessDirectoriesAreBounded(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	tree := r.Git("rev-parse", "HEAD^{tree}")
	for range 40 {
		var lines strings.Builder
		for i := range 10 {
			fmt.Fprintf(&lines, "040000 tree %s\td%d\n", tree, i)
		}
		tree = r.MkTree(lines.String())
	}
	commit := r.Git("commit-tree", "-m", "x", tree)
	started := time.Now()
	desired, err := Fetch(t.Context(), Options{Location: r.Dir, Selector: refs.Selector{Commit: commit}})
	t.Logf("%s, %v, %d problems", time.Since(started), err, len(desired.Problems))
	if err == nil && len(desired.Problems) == 0 || time.Since(started) > time.Minute {
		t.Errorf("%d clusters, and no problem after %s", len(desired.Clusters), time.Since(started))
	}
}
