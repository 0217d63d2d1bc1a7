package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/report/findings"
	"quorate.dev/quorate/reconcile/report/markdown"
)

// outputs contains the formats and destinations of a report.
type outputs struct {
	// formats lists the supported formats.
	formats []string
	chosen  []output
}

// output is a format and its file. The file is empty for stdout.
type output struct{ format, file string }

func (o *outputs) add(c *cobra.Command, formats ...string) {
	o.formats = formats
	c.Flags().VarP(o, "output", "o", inWords(formats)+"; json=FILE writes JSON to FILE; repeatable, with at most one "+
		"format for stdout")
}

// Set adds an output: FORMAT for stdout, or FORMAT=FILE.
func (o *outputs) Set(text string) error {
	format, file, named := strings.Cut(text, "=")
	if named && file == "" {
		return errors.New("expected FORMAT or FORMAT=FILE, but the file name is empty")
	}
	if file == "-" || file == "/dev/stdout" {
		file = ""
	}
	o.chosen = append(o.chosen, output{format, file})
	return nil
}

// String returns the chosen outputs.
func (o *outputs) String() string {
	var texts []string
	for _, chosen := range o.all() {
		text := chosen.format
		if chosen.file != "" {
			text += "=" + chosen.file
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// Type implements pflag.Value.
func (o *outputs) Type() string { return "format[=file]" }

// all returns the chosen outputs, or text on stdout by default.
func (o *outputs) all() []output {
	if len(o.chosen) == 0 {
		return []output{{format: "text"}}
	}
	return o.chosen
}

// check rejects unknown formats, two outputs to the same file, and files that cannot be written. It must be called
// before the command does anything.
func (o *outputs) check() error {
	for i, chosen := range o.all() {
		if err := oneOf("output", chosen.format, o.formats...); err != nil {
			return err
		}
		for _, earlier := range o.all()[:i] {
			switch {
			case !samePlace(earlier.file, chosen.file):
			case chosen.file == "":
				return usageError{fmt.Errorf("--output %s and --output %s: only one of them can be written to "+
					"stdout; write the other to a file, such as %s=FILE", earlier.format, chosen.format, chosen.format)}
			default:
				return usageError{fmt.Errorf("--output %s=%s and --output %s=%s: both write to the same file",
					earlier.format, earlier.file, chosen.format, chosen.file)}
			}
		}
		if chosen.file == "" || chosen.file == stderrFile {
			continue
		}
		if err := writable("output", chosen.file); err != nil {
			return err
		}
	}
	return nil
}

// samePlace reports whether two names refer to the same file, either because the paths are equal or because both exist
// and are the same file.
func samePlace(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	first, err := filepath.Abs(a)
	second, otherErr := filepath.Abs(b)
	if err == nil && otherErr == nil && first == second {
		return true
	}
	is, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(is, other)
}

// stderrFile is the file name of stderr.
const stderrFile = "/dev/stderr"

// write writes a report to all outputs, even if some of them fail.
func (o *outputs) write(std streams, render func(w io.Writer, format string) error) error {
	var failures []error
	for _, chosen := range o.all() {
		if chosen.file == "" {
			failures = append(failures, render(std.out, chosen.format))
			continue
		}
		var b bytes.Buffer
		err := render(&b, chosen.format)
		switch {
		case err != nil:
		case chosen.file == stderrFile:
			_, err = std.err.Write(b.Bytes())
		default:
			err = replaceFile(chosen.file, b.Bytes())
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("write --output %s=%s: %w", chosen.format, chosen.file, err))
		}
	}
	return errors.Join(failures...)
}

// replaceFile replaces the content of a file atomically, so that readers see either the old or the new content. It
// writes to files that are not regular, such as pipes, in place.
func replaceFile(name string, content []byte) (err error) {
	mode := os.FileMode(0)
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // keep the symbolic link
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		return overwrite(name, content)
	case err == nil:
		mode = info.Mode().Perm()
	}
	file, err := unfinishedBeside(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the new file did not replace the old file
		}
	}()
	if mode != 0 {
		err = file.Chmod(mode)
	}
	if err == nil {
		_, err = file.Write(content)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// unfinishedBeside creates a new file next to the named file, with default permissions.
func unfinishedBeside(name string) (*os.File, error) {
	for i := 0; ; i++ {
		file, err := os.OpenFile(fmt.Sprintf("%s.%d.%d.new", name, os.Getpid(), i),
			os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, os.ErrExist) || i == 100 {
			return file, err
		}
	}
}

// outcome is the result of a command.
type outcome struct {
	// command is the name of the command.
	command string
	report  report.Report
	// failOn contains the risks in --fail-on.
	failOn []forecast.Risk
	// source specifies where the declarations come from.
	source *sourceFlags
}

// report writes the outcome to all outputs.
func (o *outputs) report(std streams, t outcome) error {
	err := o.write(std, t.render)
	if slices.ContainsFunc(o.all(), func(chosen output) bool { return chosen.format == "github" }) {
		err = errors.Join(err, t.summarize(os.Getenv("GITHUB_STEP_SUMMARY")))
	}
	return err
}

// render writes the outcome in one format.
func (t outcome) render(w io.Writer, format string) error {
	switch format {
	case "json":
		return report.JSON(w, t.report)
	case "state":
		return report.States(w, t.report)
	case "markdown":
		_, err := io.WriteString(w, markdown.Comment(t.report, markdown.Options{Command: t.command}))
		return err
	case "github":
		return findings.GitHub(w, t.report, t.findings())
	case "junit":
		return findings.JUnit(w, t.command, t.report, t.findings())
	case "sarif":
		return findings.SARIF(w, version(), t.report, t.findings())
	}
	return report.Text(w, t.report, style(w))
}

func (t outcome) findings() []findings.Finding {
	return findings.Of(t.report, findings.Options{FailOn: t.failOn, Root: t.source.rootsIn(checkout())})
}

// explainFailOn writes which risks listed in --fail-on make the command fail.
func (t outcome) explainFailOn(w io.Writer) {
	for _, f := range t.findings() {
		if f.Rule == findings.Risk {
			fmt.Fprintf(w, "quorate: failed: %s: %s (--fail-on)\n", f.Cluster, f.Message)
		}
	}
}

// mostOfSummary is the maximum size of a step summary on GitHub, in bytes. GitHub rejects larger summaries entirely.
const mostOfSummary = 1 << 20

// summarize appends the report to the step summary of GitHub Actions if the command runs there.
func (t outcome) summarize(file string) error {
	if file == "" {
		return nil
	}
	var before int64
	if info, err := os.Stat(file); err == nil {
		before = info.Size()
	}
	left := int(mostOfSummary - before)
	comment := "\n" + markdown.Comment(t.report, markdown.Options{Command: t.command, Most: max(left-1, 1)})
	if len(comment) > left {
		return nil // other commands in the step have used up the summary's limit
	}
	summary, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = summary.WriteString(comment)
		err = errors.Join(err, summary.Close())
	}
	if err != nil {
		return fmt.Errorf("write the step summary to GITHUB_STEP_SUMMARY: %w", err)
	}
	return nil
}
