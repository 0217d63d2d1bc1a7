package gitsource

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io/fs"
	"time"

	// This registers CA certificates for images without any, before init starts serving.
	_ "golang.org/x/crypto/x509roots/fallback"

	"quorate.dev/quorate/gitsource/cache"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
)

func init() { confined.ServeReaching(childName, prepare, serve) }

// prepare reads the files that the fetcher needs but cannot read once it is confined, and creates the cache directory.
func prepare(work json.RawMessage) {
	var j job
	if json.Unmarshal(work, &j) != nil {
		return // serve reports it
	}
	_ = time.Local.String()
	if !isRemote(j.Options.Location) {
		return
	}
	_, _ = x509.SystemCertPool() // the pool is loaded only once
	if j.Options.CacheDir != "" {
		_, _ = cache.Open(j.Options.CacheDir) // errors are reported when the cache is used
	}
}

// serve carries out a job in the fetcher, and reports the result to the parent.
func serve(parent *confined.Parent, work json.RawMessage) {
	last, err := do(parent, work)
	if err != nil {
		last = message{Failed: failureOf(err)}
	}
	parent.Tell(last)
}

func do(parent *confined.Parent, work json.RawMessage) (message, error) {
	var j job
	if err := json.Unmarshal(work, &j); err != nil {
		return message{}, err
	}
	ctx := context.Background() // the parent ends the process on timeout
	if j.Older != "" {
		descends, err := descendsHere(ctx, j.Options, j.Newer, j.Older)
		return message{Descends: descends}, err
	}
	found, _, err := fetchHere(ctx, j.Options, j.Unless, answering(parent))
	return message{Found: &found}, err
}

// answering returns a filesReader that lets the parent read the files of a revision.
func answering(parent *confined.Parent) filesReader {
	return func(_ context.Context, o Options, files fs.FS, r refs.Revision) (Desired, error) {
		answer := manifests.Answers(files, o.Limits)
		next := message{Opened: &r}
		for {
			var q question
			parent.Ask(next, &q)
			switch {
			case q.Failed:
				return Desired{}, errReading
			case q.Ended:
				return Desired{Revision: r}, nil
			}
			a := answer(q.Question)
			next = message{Answer: &a}
		}
	}
}
