package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// TestCanceledRequestIsNotLoggedAsError checks that stopping a run during a request is not logged as an error.
func TestCanceledRequestIsNotLoggedAsError(t *testing.T) {
	var b strings.Builder
	log := logr.FromContextOrDiscard(withLog(t.Context(), slog.New(slog.NewTextHandler(&b, nil)))).
		WithName("client").WithValues("verb", "GET")
	log.Error(fmt.Errorf("read: %w", context.Canceled), "given up")
	log.Error(errors.New("reset by peer"), "broken")
	log.Info("begun")
	if said := b.String(); strings.Contains(said, "given up") || !strings.Contains(said, "reset by peer") ||
		!strings.Contains(said, "begun") {
		t.Errorf("got\n%s", said)
	}
}
