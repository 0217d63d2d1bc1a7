package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/gitsource/manifests/confined"
)

// release is set by the linker; see the Makefile.
var release = ""

// version is the release, or else what Go knows of the build.
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
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what this machine has to confine the reading of sources with",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(std.out, versionText())
			return err
		},
	}
}

// versionText is what the command says, and the flag --version.
func versionText() string {
	return fmt.Sprintf("quorate %s\nLandlock: %s\n", version(), confined.Landlock())
}
