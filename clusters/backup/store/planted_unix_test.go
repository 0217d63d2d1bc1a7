//go:build unix

package store

import (
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/clusters/backup/disk"
)

// plant returns a directory store that contains a backup, and a directory outside of it with the same content.
func plant(t *testing.T) (in directory, outside string, m Manifest) {
	t.Helper()
	m = manifest()
	for _, root := range []*string{&in.root, &outside} {
		*root = t.TempDir()
		b := directory{*root}
		if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return in, outside, m
}

// contents returns the content of all files below a directory.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLinkedDirectoriesAreNotFollowed plants links in place of the directories of a store, to a directory outside of
// the store and to another directory inside it. It checks that nothing behind a link is read, written, listed or
// deleted, that the content behind the link counts as unknown rather than missing, and that other clusters are not
// affected.
func TestLinkedDirectoriesAreNotFollowed(t *testing.T) {
	ctx := t.Context()
	for _, part := range []string{"ns", "ns/a", "ns/a/" + id} {
		for _, inside := range []bool{false, true} {
			d, outside, m := plant(t)
			if err := d.Create(ctx, "other/a/"+id+"/"+SlotID(m.Slot)+".json", strings.NewReader("{}")); err != nil {
				t.Fatal(err)
			}
			target, at := filepath.Join(outside, part), filepath.Join(d.root, part)
			if inside {
				target = filepath.Join(d.root, "moved")
			}
			if err := errors.Join(os.Rename(at, filepath.Join(d.root, "moved")), os.Symlink(target, at)); err != nil {
				t.Fatal(err)
			}
			before := contents(t, outside)
			beforeMoved := contents(t, filepath.Join(d.root, "moved"))
			name := m.Backup().manifestName()
			_, opened := d.Open(ctx, name)
			_, sized := d.Size(ctx, name)
			_, listed := d.List(ctx, m.Backup().Cluster.dir())
			_, everything := d.List(ctx, "")
			for what, err := range map[string]error{
				"create": d.Create(ctx, m.Backup().dir()+"new", strings.NewReader("x")), "replace": d.Replace(ctx, name, strings.NewReader("x")),
				"open": opened, "size": sized, "list": listed, "list everything": everything, "delete": d.Delete(ctx, name),
			} {
				if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), "symbolic link") {
					t.Errorf("%s through a link at %s (inside: %t): %v", what, part, inside, err)
				}
			}
			if _, err := ReadUseful(ctx, d, m.Backup()); err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrUseless) {
				t.Errorf("link at %s: whether the backup exists should be unknown: %v", part, err)
			}
			if after := contents(t, outside); !maps.Equal(before, after) {
				t.Errorf("link at %s: the files outside have changed: %q", part, after)
			}
			if after := contents(t, filepath.Join(d.root, "moved")); !maps.Equal(beforeMoved, after) {
				t.Errorf("link at %s: the files behind the link have changed: %q", part, after)
			}
			if names, err := d.List(ctx, "other/"); err != nil || len(names) != 1 {
				t.Errorf("link at %s: another cluster cannot be listed: %q, %v", part, names, err)
			}
		}
	}
}

// TestSwappedEntriesAreNotFollowed repeatedly swaps a directory or a file of the store with a link to the outside while
// the store is read and written.
func TestSwappedEntriesAreNotFollowed(t *testing.T) {
	ctx := t.Context()
	for _, what := range []string{"directory", "file"} {
		d, outside, m := plant(t)
		name := m.DataPath()
		swapped := name
		if what == "directory" {
			swapped = "ns/a"
		}
		at, link := filepath.Join(d.root, swapped), filepath.Join(d.root, "link")
		if err := errors.Join(os.WriteFile(filepath.Join(outside, name), []byte("secret"), 0o600), os.Symlink(filepath.Join(outside, swapped), link)); err != nil {
			t.Fatal(err)
		}
		if err := disk.Exchange(at, link); err != nil {
			t.Skip(err)
		}
		before := contents(t, outside)
		end := time.Now().Add(time.Second / 2)
		var swapping sync.WaitGroup
		swapping.Go(func() {
			for time.Now().Before(end) {
				_ = disk.Exchange(at, link)
			}
		})
		for time.Now().Before(end) {
			if r, err := d.Open(ctx, name); err == nil {
				text, err := io.ReadAll(r)
				if _ = r.Close(); strings.Contains(string(text), "secret") {
					t.Errorf("%s: a file outside was read: %q, %v", what, text, err)
				}
			}
			_ = d.Replace(ctx, m.Backup().dir()+"new", strings.NewReader("x"))
			_ = d.Delete(ctx, m.Backup().manifestName())
		}
		swapping.Wait()
		if after := contents(t, outside); !maps.Equal(before, after) {
			t.Errorf("%s: the files outside have changed: %q", what, after)
		}
	}
}

// TestPlantedEntriesAreRefused plants something other than a regular file under each name of a backup. It checks that
// nothing is read or written through it, that nothing blocks, and that the name still exists and can be replaced and
// deleted.
func TestPlantedEntriesAreRefused(t *testing.T) {
	ctx := t.Context()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, put := range map[string]func(at string) error{
		"link":                  func(at string) error { return os.Symlink(secret, at) },
		"link inside the store": func(at string) error { return os.Symlink("file", at) },
		"link to nothing":       func(at string) error { return os.Symlink(secret+"-missing", at) },
		"pipe":                  func(at string) error { return unix.Mkfifo(at, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			d := directory{t.TempDir()}
			dir := "ns/a/" + id + "/"
			if err := d.Create(ctx, dir+"file", strings.NewReader("abc")); err != nil {
				t.Fatal(err)
			}
			name := dir + "20261122t180000z.json"
			if err := put(filepath.Join(d.root, name)); err != nil {
				t.Fatal(err)
			}
			within(t, func() {
				_, opened := d.Open(ctx, name)
				_, sized := d.Size(ctx, name)
				for doing, err := range map[string]error{"open": opened, "size": sized} {
					if !errors.Is(err, disk.ErrIrregular) || errors.Is(err, ErrNotFound) {
						t.Errorf("%s: %v", doing, err)
					}
				}
				if err := d.Create(ctx, name, strings.NewReader("new")); !errors.Is(err, ErrExists) {
					t.Errorf("create: %v", err)
				}
				if names, err := d.List(ctx, "ns/a/"); err != nil || !slices.Equal(names, []string{dir + "20261122t180000z.damaged.json", name, dir + "file"}) {
					t.Errorf("list: %q, %v", names, err)
				}
				if err := d.Replace(ctx, name, strings.NewReader("new")); err != nil || content(t, d, name) != "new" {
					t.Errorf("replace: %v", err)
				}
				if err := errors.Join(d.Delete(ctx, name), put(filepath.Join(d.root, name)), d.Delete(ctx, name)); err != nil {
					t.Errorf("delete: %v", err)
				}
			})
			if content(t, d, dir+"file") != "abc" {
				t.Error("the file in the store has changed")
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != "abc" {
				t.Errorf("the file outside: %q, %v", text, err)
			}
			if _, err := os.Lstat(secret + "-missing"); err == nil {
				t.Error("a file was created where the link leads")
			}
		})
	}
}

// TestPlantedEntriesDoNotStopBackups plants links and other entries under the names of one backup. It checks that the
// backup does not count and is not verified, and that nothing is deleted because of it.
func TestPlantedEntriesDoNotStopBackups(t *testing.T) {
	ctx := t.Context()
	for what, name := range map[string]func(Manifest) string{
		"manifest": func(m Manifest) string { return m.Backup().manifestName() },
		"damage":   func(m Manifest) string { return m.Backup().damagedName() },
		"data":     Manifest.DataPath,
	} {
		for kind, put := range map[string]func(outside, at string) error{
			"link": os.Symlink, "pipe": func(_, at string) error { return unix.Mkfifo(at, 0o600) },
			"directory": func(_, at string) error { return os.Mkdir(at, 0o700) },
		} {
			d, outside, m := plant(t)
			v, err := BeginVerification(ctx, d, m)
			if err == nil {
				err = v.Record(ctx, d)
			}
			at := filepath.Join(d.root, name(m))
			if err := errors.Join(err, os.RemoveAll(at), put(filepath.Join(outside, name(m)), at)); err != nil {
				t.Fatal(err)
			}
			within(t, func() {
				if _, err := ReadUseful(ctx, d, m.Backup()); !errors.Is(err, ErrUseless) {
					t.Errorf("%s is a %s: %v", what, kind, err)
				}
				if err := Confirm(ctx, d, m.Backup()); err == nil {
					t.Errorf("%s is a %s: the backup counts as verified", what, kind)
				}
				if named, err := IsNamed(ctx, d, m.DataPath()); err == nil && !named {
					t.Errorf("%s is a %s: the data counts as left behind", what, kind)
				}
				listing, err := List(ctx, d, m.Backup().Cluster)
				if err != nil {
					t.Errorf("%s is a %s: %v", what, kind, err)
				}
				if b := listing.Backups; len(b) != 1 || b[0].Damaged == (what == "data") {
					t.Errorf("%s is a %s: listed %+v", what, kind, b)
				}
			})
		}
	}
}

// TestUploadIgnoresPlantedTemporaryFiles checks that links named like unfinished files are neither followed nor
// removed, even if they are old.
func TestUploadIgnoresPlantedTemporaryFiles(t *testing.T) {
	d, outside, m := plant(t)
	dir := path.Dir(m.DataPath())
	link := filepath.Join(d.root, dir, unfinished+"1")
	target := filepath.Join(outside, m.DataPath())
	old := time.Now().Add(-2 * abandoned)
	if err := errors.Join(os.Symlink(target, link), os.Chtimes(target, old, old)); err != nil {
		t.Fatal(err)
	}
	if err := d.Create(t.Context(), dir+"/new", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "abc" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestForeignEntriesAreIgnored checks that a store can be listed even if it contains links and unreadable directories
// whose names do not belong to a store.
func TestForeignEntriesAreIgnored(t *testing.T) {
	d, outside, m := plant(t)
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(d.root, "..data")), os.Symlink(outside, filepath.Join(d.root, "ns", "a", "notes")),
		os.Symlink(outside, filepath.Join(d.root, "ns", "a", id, "more")), os.MkdirAll(filepath.Join(d.root, "ns", "a", "Deep", "deeper"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listing, err := List(t.Context(), d, Cluster{})
	if err != nil || len(listing.Backups) != 1 || len(listing.Data) != 1 || listing.Data[m.DataPath()].IsZero() {
		t.Errorf("%+v, %v", listing, err)
	}
}

// within runs do and fails the test if do blocks.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it blocks")
	}
}
