package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/internal/config"
	"quorate.dev/quorate/reconcile/report"
)

// streams contains the writers for results (out) and for everything else (err).
type streams struct{ out, err io.Writer }

// The exit codes are a contract; see docs/reference/exit-codes.md.
const (
	exitOK           = 0
	exitError        = 1
	exitChanges      = 2
	exitInvalid      = 3
	exitBlocked      = 4
	exitLocked       = 5
	exitNotConverged = 6
)

// exit is the error of a command that ends with a specific exit code and has already printed its messages.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError marks an error in the command line.
type usageError struct{ error }

// usage joins problems with the command line into one error, or returns nil if there are none.
func usage(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return usageError{errors.Join(problems...)}
}

// blockedError marks an error that requires manual action and should not be retried.
type blockedError struct{ error }

// Unwrap returns the underlying error.
func (e blockedError) Unwrap() error { return e.error }

// execute runs a command line and returns the exit code.
func execute(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(args)
	understood := false
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := c.ValidateRequiredFlags(); err != nil {
			return err
		}
		understood = true
		return nil
	}
	command, err := root.ExecuteContextC(ctx)
	var code exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	err = explain(root, command, err)
	fmt.Fprintln(std.err, "quorate:", style(std.err).Wrap(strings.ReplaceAll(err.Error(), "\n", "; "),
		len("quorate: "), 4))
	if !understood || errors.As(err, &usageError{}) || errors.Is(err, gitsource.ErrOptions) {
		return exitInvalid
	}
	if errors.As(err, &blockedError{}) {
		return exitBlocked
	}
	return exitError
}

// plugin is the program that kubectl runs for "kubectl quorate". It may be a link to quorate.
const plugin = "kubectl-quorate"

func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Reconcile etcd clusters on Kubernetes with a git repository",
		Long: `Quorate runs etcd clusters on Kubernetes from a git repository. It does not need a resident
controller: each pass reads the declared EtcdClusters, observes Kubernetes and
etcd's own membership, performs the next action for each cluster, reports in the
custom resources, and exits. Passes may be killed at any time and repeated.

Results go to stdout, everything else to stderr. Exit codes:
  0  nothing to do, or acted            4  blocked: manual action required
  1  error                              5  another pass is acting
  2  changes (--detailed-exitcode)      6  not converged in time
  3  invalid input`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),

		DisableSuggestions:         true, // explain prints suggestions
		SuggestionsMinimumDistance: 2,
	}
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == plugin {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl quorate"}
	}
	root.SetVersionTemplate(versionText())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			setting := config.NameOf(unknown.GetSpecifiedName())
			if setting != "" && c.Flags().Lookup("config") != nil {
				err = fmt.Errorf("%w; it is the setting %s in the configuration file (--config)", err, setting)
			}
			return fmt.Errorf("%w; for the list, run %q", err, c.CommandPath()+" --help")
		}
		return err
	})
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ",
		fmt.Sprintf("Flags.FlagUsagesWrapped %d ", cmp.Or(style(std.out).Width, helpWidth))))
	root.AddCommand(newRun(std), newPlan(std), newValidate(std), newConfig(std), newStatus(std), newExplain(std),
		newInstall(std), newUninstall(std), newBackup(std), newBackups(std), newRestore(std),
		newRecover(std), newAdopt(std), newInspect(std), newMemberFiles(std), newVersion(std))
	return root
}

// explain extends an error about the command line with suggestions and a reference to the help.
func explain(root, command *cobra.Command, err error) error {
	var name, of string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q for %q", &name, &of); n == 2 {
		if of != root.CommandPath() {
			return fmt.Errorf("%w; for help, run %q", err, of+" --help")
		}
		if similar := root.SuggestionsFor(name); len(similar) > 0 {
			err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(similar, " or "))
		}
		return fmt.Errorf("%w; for the list, run %q", err, of+" --help")
	}
	if strings.HasPrefix(err.Error(), "accepts ") { // cobra reports only the number of arguments
		return fmt.Errorf("%w; usage: %s", err, command.UseLine())
	}
	return err
}

// helpWidth is the width of the help if the output is not a terminal.
const helpWidth = 100

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// widest is the maximum text width, even on wider terminals, because long lines are hard to read.
const widest = 120

// style returns the style for w. On a terminal, lines are wrapped, and colors are used unless NO_COLOR or TERM=dumb is
// set.
func style(w io.Writer) report.Style { return styleUpTo(w, widest) }

// styleUpTo is like style, but with the given maximum width.
func styleUpTo(w io.Writer, widest int) report.Style {
	if !isTerminal(w) {
		return report.Style{}
	}
	s := report.Style{Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: widest}
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			s.Width = min(width, widest)
		}
	}
	return s
}

// oneOf checks the value of a flag that has a fixed set of choices.
func oneOf(flag, value string, choices ...string) error {
	for _, c := range choices {
		if value == c {
			return nil
		}
	}
	return usageError{fmt.Errorf("%s %q: expected one of %s", nameOf(flag), value, strings.Join(choices, ", "))}
}
