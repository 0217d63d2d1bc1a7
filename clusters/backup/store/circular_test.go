package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// page is one page of a list: names, and the token of the next page. An empty token ends the list.
type page struct {
	names []string
	next  string
}

// write responds to a list request in the format of the given kind of store.
func (p page) write(w http.ResponseWriter, kind string) {
	now := time.Now().UTC()
	switch kind {
	case "s3":
		fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%t</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", p.next != "", p.next)
		for _, name := range p.names {
			fmt.Fprintf(w, "<Contents><Key>ours/%s</Key><LastModified>%s</LastModified></Contents>", name, now.Format(time.RFC3339))
		}
		fmt.Fprint(w, "</ListBucketResult>")
	case "gs":
		w.Header().Set("Content-Type", "application/json")
		var items []string
		for _, name := range p.names {
			items = append(items, fmt.Sprintf(`{"name":"ours/%s","bucket":"backups"}`, name))
		}
		fmt.Fprintf(w, `{"nextPageToken":%q,"items":[%s]}`, p.next, strings.Join(items, ","))
	case "azblob":
		fmt.Fprint(w, "<EnumerationResults><Blobs>")
		for _, name := range p.names {
			fmt.Fprintf(w, "<Blob><Name>ours/%s</Name><Properties><Last-Modified>%s</Last-Modified><Content-Length>1</Content-Length></Properties></Blob>",
				name, now.Format(http.TimeFormat))
		}
		fmt.Fprintf(w, "</Blobs><NextMarker>%s</NextMarker></EnumerationResults>", p.next)
	}
}

// eachLister runs a test with each kind of store. The store's lists consist of pages, selected by the token in the
// request. The first token is empty.
func eachLister(t *testing.T, pages func(token string) page, test func(t *testing.T, b objects)) {
	for kind, serve := range map[string]func(*testing.T, string) objects{
		"s3": openS3At, "azblob": openAzureAt, "gs": func(t *testing.T, url string) objects {
			t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(url, "http://"))
			return open(t, "gs://backups/ours", Options{})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				pages(q.Get("continuation-token")+q.Get("pageToken")+q.Get("marker")).write(w, kind)
			}))
			t.Cleanup(served.Close)
			test(t, serve(t, served.URL))
		})
	}
}

func TestCircularListIsAnError(t *testing.T) {
	next := func(token string) int { n, _ := strconv.Atoi(token); return n + 1 }
	for name, pages := range map[string]func(token string) page{
		"the same token":        func(string) page { return page{[]string{"ns/a/1"}, "1"} },
		"the same token, empty": func(string) page { return page{nil, "1"} },
		"a circle of three": func(token string) page {
			n := next(token) % 3
			return page{[]string{fmt.Sprint("ns/a/", n)}, fmt.Sprint(n)}
		},
		"a circle of three, empty": func(token string) page { return page{nil, fmt.Sprint(next(token) % 3)} },
		"a circle after pages of its own": func(token string) page {
			n := next(token)
			if n == 6 {
				n = 3
			}
			return page{[]string{fmt.Sprint("ns/a/", n)}, fmt.Sprint(n)}
		},
		"the same names by new tokens": func(token string) page { return page{[]string{"ns/a/1", "ns/a/2"}, fmt.Sprint(next(token))} },
		"nothing by new tokens":        func(token string) page { return page{nil, fmt.Sprint(next(token))} },
	} {
		t.Run(name, func(t *testing.T) {
			eachLister(t, pages, func(t *testing.T, b objects) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if names, err := b.List(ctx, "ns/"); !errors.Is(err, errEndless) || names != nil {
					t.Errorf("%q, %v", names, err)
				}
				if b.gone(ctx) || ctx.Err() != nil {
					t.Errorf("gone, or not within a minute: %v", ctx.Err())
				}
			})
		})
	}
}

// TestSparsePagesAreListedCompletely checks that a list is complete even if the store returns fewer names than
// requested, no names at all, or repeats the last name of a page on the next page.
func TestSparsePagesAreListedCompletely(t *testing.T) {
	const pages = 900
	eachLister(t, func(token string) page {
		n, _ := strconv.Atoi(token)
		p := page{next: fmt.Sprint(n + 1)}
		if n%300 == 299 {
			p.names = []string{fmt.Sprint("ns/a/", max(0, n-300)), fmt.Sprint("ns/a/", n)}
		}
		if n+1 == pages {
			p.next = ""
		}
		return p
	}, func(t *testing.T, b objects) {
		want := []string{"ns/a/0", "ns/a/299", "ns/a/599", "ns/a/899"}
		slices.Sort(want)
		if names, err := b.List(t.Context(), "ns/"); err != nil || !slices.Equal(names, want) {
			t.Errorf("%q, %v", names, err)
		}
	})
}
