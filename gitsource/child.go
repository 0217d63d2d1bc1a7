package gitsource

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io/fs"
	"time"

	// Before it serves, for images without certificate authorities of their own.
	_ "golang.org/x/crypto/x509roots/fallback"

	"quorate.dev/quorate/gitsource/cache"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
)

func init() { confined.ServeReaching(childName, prepare, serve) }

// prepare reads what the process may not read later, wherever it is, and makes the directory of the
// cache.
func prepare(work json.RawMessage) {
	var j job
	if json.Unmarshal(work, &j) != nil {
		return // serve says so
	}
	_ = time.Local.String()
	if !isRemote(j.Options.Location) {
		return
	}
	_, _ = x509.SystemCertPool() // it is read once
	if j.Options.CacheDir != "" {
		_, _ = cache.Open(j.Options.CacheDir) // what is wrong with it is said when it is needed
	}
}

// serve is the child.
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
	ctx := context.Background() // the parent ends the process when it is time
	if j.Older != "" {
		descends, err := descendsHere(ctx, j.Options, j.Newer, j.Older)
		return message{Descends: descends}, err
	}
	found, _, err := fetchHere(ctx, j.Options, j.Unless, answering(parent))
	return message{Found: &found}, err
}

// answering has the parent read the files of a revision.
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
