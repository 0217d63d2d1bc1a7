package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/reconcile/report"
)

// release is set by the linker; see the Makefile.
var release = ""

// version returns the release or, if it is not set, the version from Go's build information.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func newVersion(std streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the sandboxing that this machine supports for reading sources",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := oneOf("output", output, "text", "json"); err != nil {
				return err
			}
			if output == "json" {
				return report.Encode(std.out, versionFacts())
			}
			_, err := fmt.Fprint(std.out, versionText())
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// versionText returns the text output of the version command and of --version.
func versionText() string {
	return fmt.Sprintf("quorate %s\nLandlock: %s\n", version(), confined.Landlock())
}

// facts is the JSON output, which includes build information.
type facts struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Landlock string `json:"landlock"`
}

func versionFacts() facts {
	f := facts{Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Landlock: confined.Landlock()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				f.Commit = setting.Value
			}
		}
	}
	return f
}
