package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable/printabletest"
)

// TestPruneShowsStoreAnswersAsPlainText checks that a store that refuses a deletion cannot control the terminal or the
// CI system in which "quorate backups prune" runs.
func TestPruneShowsStoreAnswersAsPlainText(t *testing.T) {
	for name, text := range map[string]string{
		"a command of Azure": printabletest.Mark + " ##vso[task.setvariable variable=PATH]/evil",
		"C1 controls":        "\u009b2J\u009b31m" + printabletest.Mark,
		"another direction":  "\u202e" + printabletest.Mark,
	} {
		served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				return
			}
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", text)
		}))
		t.Cleanup(served.Close)
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "not a secret")
		at, err := store.ParseLocation("s3://backups/ours")
		if err != nil {
			t.Fatal(err)
		}
		hostile, err := at.Open(t.Context(), store.Options{S3: store.S3{Endpoint: served.URL, PathStyle: true}})
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := pruned(t, func(b store.Bucket) store.Bucket {
			return changing{b, func(name string, _ func() error) error { return hostile.Delete(t.Context(), name) }}
		})
		if err != nil {
			t.Fatal(err)
		}
		if unfit := printabletest.Unfit(got.err); unfit != "" {
			t.Errorf("%s: %s:\n%q", name, unfit, got.err)
		}
	}
}
