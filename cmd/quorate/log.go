package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"quorate.dev/quorate/internal/printable"
)

// logFlags configure logging.
type logFlags struct{ level, format string }

func (f *logFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.level, "log-level", "",
		"debug, info, warn or error (default info; nothing on a terminal, which shows progress instead)")
	c.Flags().StringVar(&f.format, "log-format", "text", "text or json")
}

// logger returns the logger that the flags specify.
func (f *logFlags) logger(std streams) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: readable}
	if isTerminal(std.err) {
		options.Level = slog.LevelError + 1 // the progress output and the report contain the same information
	}
	if f.level != "" {
		if err := oneOf("log-level", f.level, choices["log-level"]...); err != nil {
			return nil, err
		}
		var level slog.Level
		if err := level.UnmarshalText([]byte(f.level)); err != nil {
			return nil, fmt.Errorf("--log-level: %w", err)
		}
		options.Level = level
	}
	if err := oneOf("log-format", f.format, choices["log-format"]...); err != nil {
		return nil, err
	}
	if f.format == "json" {
		return slog.New(slog.NewJSONHandler(std.err, options)), nil
	}
	return slog.New(slog.NewTextHandler(std.err, options)), nil
}

// readable escapes log values for terminals and CI systems.
func readable(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(printable.Line(value))
	case error:
		a.Value = slog.StringValue(printable.Line(value.Error()))
	}
	return a
}

// withLog returns a copy of ctx that contains the logger, for use by client-go.
func withLog(ctx context.Context, log *slog.Logger) context.Context {
	return logr.NewContextWithSlogLogger(ctx, slog.New(withoutCancelled{log.Handler()}))
}

// withoutCancelled drops log records about canceled operations, because client-go logs an error if a run is stopped
// while it is reading a response.
type withoutCancelled struct{ slog.Handler }

func (h withoutCancelled) Handle(ctx context.Context, record slog.Record) error {
	cancelled := false
	record.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		cancelled = is && errors.Is(err, context.Canceled)
		return !cancelled
	})
	if cancelled {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

func (h withoutCancelled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutCancelled{h.Handler.WithAttrs(attrs)}
}

func (h withoutCancelled) WithGroup(name string) slog.Handler {
	return withoutCancelled{h.Handler.WithGroup(name)}
}
