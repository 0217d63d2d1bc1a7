package gitsource

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/storage/memory"

	"quorate.dev/quorate/gitsource/gittest"
)

// fleet commits the given number of clusters, each in its own file.
func (r *repository) fleet(clusters int) {
	r.T.Helper()
	for i := range clusters {
		name := fmt.Sprintf("cluster-%04d", i)
		r.Write(name+".yaml", gittest.ClusterNamed(name))
	}
	r.Commit()
}

// BenchmarkUnchanged reads an unchanged source with the same Reader, with a new Reader and a cache, and with a new
// Reader and no cache. A go-git clone is the baseline. The server "canned" sends a fixed response. The server "git" is
// git's own, which starts a process for each request.
func BenchmarkUnchanged(b *testing.B) {
	r := newRepository(b)
	r.fleet(100)
	answers := r.answers()
	locations := map[string]string{"git": r.Serve(), "canned": serveAnswers(b, whole(answers.list), whole(answers.pack))}
	for where, location := range locations {
		fetch := func(reader *Reader, o Options) {
			if _, err := reader.Fetch(b.Context(), o); err != nil {
				b.Fatal(err)
			}
		}
		o, cached := Options{Location: location}, Options{Location: location, CacheDir: cacheDir(b)}
		same := new(Reader)
		fetch(same, o)
		fetch(new(Reader), cached)
		for name, one := range map[string]func(){
			"same process":  func() { fetch(same, o) },
			"other process": func() { fetch(new(Reader), cached) },
			"from start":    func() { fetch(new(Reader), o) },
			"go-git clone":  func() { clone(b, location) },
		} {
			b.Run(where+"/"+name, func(b *testing.B) {
				for b.Loop() {
					one()
				}
			})
		}
	}
}

func clone(b *testing.B, location string) {
	b.Helper()
	o := &git.CloneOptions{URL: location, Depth: 1, SingleBranch: true, Tags: git.NoTags}
	if _, err := git.CloneContext(context.Background(), memory.NewStorage(), nil, o); err != nil {
		b.Fatal(err)
	}
}
