package gitsource

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// traffic counts requests to a server and bytes sent.
type traffic struct{ lists, packs, bytes atomic.Int64 }

// counted serves the repository and counts the requests.
func (r *repository) counted() (string, *traffic) {
	r.T.Helper()
	seen, git := &traffic{}, r.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost {
			seen.packs.Add(1)
		} else {
			seen.lists.Add(1)
		}
		git.ServeHTTP(countingWriter{w, &seen.bytes}, request)
	}))
	r.T.Cleanup(server.Close)
	return server.URL + "/.git", seen
}

type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (c countingWriter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func (s *traffic) want(t *testing.T, lists, packs int64) {
	t.Helper()
	if s.lists.Load() != lists || s.packs.Load() != packs {
		t.Errorf("%d lists of references and %d packs were asked for, want %d and %d", s.lists.Load(), s.packs.Load(), lists, packs)
	}
}

func fetched(t *testing.T, r *Reader, o Options) Desired {
	t.Helper()
	desired, err := r.Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return desired
}

func TestUnchangedRevisionIsNotFetched(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	r.Git("tag", "--annotate", "--message=x", "v1")
	location, seen := r.counted()
	for name, o := range map[string]Options{"branch": {Location: location}, "tag": {Location: location, Selector: refs.Selector{Tag: "v1"}}} {
		t.Run(name, func(t *testing.T) {
			lists, packs := seen.lists.Load(), seen.packs.Load()
			reader := new(Reader)
			first := fetched(t, reader, o)
			seen.want(t, lists+1, packs+1)
			wantClusters(t, first, "a")
			if again := fetched(t, reader, o); !reflect.DeepEqual(again, first) || &again.Clusters[0] != &first.Clusters[0] {
				t.Errorf("%v, want %v, not a copy", again, first)
			}
			seen.want(t, lists+2, packs+1)
		})
	}
}

func TestChangedOptionsOrRevisionIsReadAgain(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	location, seen := r.counted()
	reader := new(Reader)
	wantClusters(t, fetched(t, reader, Options{Location: location}), "a")

	other := fetched(t, reader, Options{Location: location, Options: manifests.Options{Namespace: "other"}})
	if got := other.Clusters[0].Cluster.Namespace; got != "other" {
		t.Errorf("namespace %s", got)
	}
	seen.want(t, 2, 2)

	r.Declare("b")
	wantClusters(t, fetched(t, reader, Options{Location: location}), "b")
	seen.want(t, 3, 3)

	dir := t.TempDir() // without a commit, Fetch must read the directory again
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(gittest.ClusterNamed(name)), 0o600); err != nil {
			t.Fatal(err)
		}
		wantClusters(t, fetched(t, reader, Options{Location: dir}), name)
	}
}

// TestFetchErrorIsNotRemembered checks that an error is not remembered, and that the result of the last read is kept.
func TestFetchErrorIsNotRemembered(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	var down atomic.Bool
	git := r.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if down.Load() {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		git.ServeHTTP(w, request)
	}))
	defer server.Close()
	o, reader := Options{Location: server.URL + "/.git", CacheDir: cacheDir(t)}, new(Reader)
	fetched(t, reader, o)
	down.Store(true)
	for _, reader := range []*Reader{reader, new(Reader)} {
		if _, err := reader.Fetch(t.Context(), o); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("error %v: the cache must not be used as a source", err)
		}
	}
	down.Store(false)
	wantClusters(t, fetched(t, reader, o), "a")
}

func TestCacheServesUnchangedRevision(t *testing.T) {
	r := newRepository(t)
	r.Write("unrelated.yaml", "something else")
	r.Write("apps/a.yaml", gittest.ClusterNamed("a"))
	r.Commit()
	location, seen := r.counted()
	o := Options{Location: location, CacheDir: filepath.Join(t.TempDir(), "made", "for", "it"), Options: manifests.Options{Path: "apps"}}
	first := fetched(t, new(Reader), o)
	seen.want(t, 1, 1)
	if again := fetched(t, new(Reader), o); !reflect.DeepEqual(again, first) {
		t.Errorf("%v, want %v", again, first)
	}
	seen.want(t, 2, 1)

	entries := entriesOf(t, o.CacheDir)
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	content := read(t, entries[0])
	for want, ok := range map[string]bool{" commit ": true, " tree ": true, "kind: EtcdCluster": true, "something else": false} {
		if strings.Contains(content, want) != ok {
			t.Errorf("the entry holds %q: %v, want %v", want, !ok, ok)
		}
	}

	r.Write("apps/a.yaml", gittest.ClusterNamed("b"))
	r.Commit()
	wantClusters(t, fetched(t, new(Reader), o), "b")
	seen.want(t, 3, 2)
	wantClusters(t, fetched(t, new(Reader), o), "b")
	seen.want(t, 4, 2)
	if content := read(t, entriesOf(t, o.CacheDir)[0]); strings.Contains(content, "name: a\n") {
		t.Error("old entries are kept")
	}
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestTamperedCacheEntryIsReplaced checks that a modified cache entry is fetched again and replaced.
func TestTamperedCacheEntryIsReplaced(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	location, seen := r.counted()
	o := Options{Location: location, CacheDir: cacheDir(t)}
	fetched(t, new(Reader), o)
	entry := entriesOf(t, o.CacheDir)[0]
	good := read(t, entry)
	blob := r.Git("rev-parse", "HEAD:cluster.yaml")
	tree := regexp.MustCompile(`(?s)[0-9a-f]{40} tree \d+\n.*?cluster\.yaml\x00.{20}\n`).FindString(good)
	for name, content := range map[string]string{
		"file":        strings.Replace(good, "name: a", "name: b", 1),
		"other name":  strings.Replace(good, blob, strings.Repeat("a", 40), 1),
		"other type":  strings.Replace(good, " blob ", " tree ", 1),
		"no type":     strings.Replace(good, " blob ", " blub ", 1),
		"longer":      good + "x",
		"truncated":   good[:len(good)-1],
		"a large lie": strings.Repeat("a", 40) + " blob 99999999999999\n",
		"nothing":     "",
		"no tree":     strings.Replace(good, tree, "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if content == good {
				t.Fatal("nothing is changed")
			}
			if err := os.WriteFile(entry, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			lists, packs := seen.lists.Load(), seen.packs.Load()
			wantClusters(t, fetched(t, new(Reader), o), "a")
			seen.want(t, lists+1, packs+1)
			if got := read(t, entry); len(got) != len(good) {
				t.Errorf("a missing entry is fetched again and kept; got %q", got)
			}
			wantClusters(t, fetched(t, new(Reader), o), "a")
			seen.want(t, lists+2, packs+1)
		})
	}
}

// cacheDir returns a path at which cache.Open creates a directory that other users cannot write to, regardless of the
// umask.
func cacheDir(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "cache")
}

func TestUnusableCacheDirIsRefused(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Location: r.Serve(), CacheDir: file}
	wantError(t, o, ErrSource, "open the cache: mkdir "+file+": not a directory")

	o.CacheDir = t.TempDir()
	if err := os.Chmod(o.CacheDir, 0o777); err != nil {
		t.Fatal(err)
	}
	wantError(t, o, ErrSource, "open the cache: "+o.CacheDir+" is writable by other users (mode drwxrwxrwx); use a new directory inside it, such as "+o.CacheDir+"/quorate")
}

// TestCacheAllowsConcurrentUse checks that several processes may use one cache at the same time.
func TestCacheAllowsConcurrentUse(t *testing.T) {
	r := newRepository(t)
	commits := []string{r.Declare("a"), r.Declare("b")}
	o := Options{Location: r.Serve(), CacheDir: cacheDir(t)}
	r.Git("config", "uploadpack.allowReachableSHA1InWant", "true")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			o := o
			if o.Selector = (refs.Selector{Commit: commits[0]}); i%2 == 1 {
				o.Selector = refs.Selector{}
			}
			desired, err := new(Reader).Fetch(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			wantClusters(t, desired, []string{"a", "b"}[i%2])
		})
	}
	all.Wait()
	if entries := entriesOf(t, o.CacheDir); len(entries) != 2 {
		t.Errorf("entries %v, want one for each source", entries)
	}
}

// TestNestedTagsAreCached checks that a tag of a tag of a commit is also cached.
func TestNestedTagsAreCached(t *testing.T) {
	r, _ := revisions(t)
	location, seen := r.counted()
	o := Options{Location: location, CacheDir: cacheDir(t), Selector: refs.Selector{Tag: "again"}}
	first := fetched(t, new(Reader), o)
	if again := fetched(t, new(Reader), o); !reflect.DeepEqual(again, first) {
		t.Errorf("%v, want %v", again, first)
	}
	seen.want(t, 2, 1)
}
