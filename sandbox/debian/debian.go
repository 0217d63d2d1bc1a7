// Package debian installs programs that a sandbox takes from the host's Debian packages instead of building them.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Package is a Debian package. File exists if the package is installed.
type Package struct {
	Name, File string
}

// Packages returns the packages that every sandbox requires, and additional packages that tests require.
func Packages() []Package {
	packages := []Package{
		{Name: "runc", File: "/usr/sbin/runc"},
		{Name: "containernetworking-plugins", File: "/usr/lib/cni/ptp"},
		{Name: "nftables", File: "/usr/sbin/nft"}, // for kube-proxy
		{Name: "mount", File: "/usr/bin/mount"},   // for the kubelet
		{Name: "strace", File: "/usr/bin/strace"}, // for tests that kill a process at its nth write
	}
	if startsServices() && os.Getenv("CI") != "true" {
		return packages
	}
	return append(packages, []Package{ // for tests that fetch over SSH, and a test that reads backups
		{Name: "openssh-server", File: "/usr/sbin/sshd"},
		{Name: "openssh-client", File: "/usr/bin/ssh-keygen"},
		{Name: "zstd", File: "/usr/bin/zstd"},
	}...)
}

// startsServices reports whether Debian starts a server as soon as it is installed, as is the case under systemd.
// Installing a sandbox must not open a port.
func startsServices() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// Missing returns the packages that are not installed.
func Missing() []Package {
	var missing []Package
	for _, p := range Packages() {
		if _, err := os.Stat(p.File); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// Install installs packages with apt-get.
func Install(ctx context.Context, packages []Package) error {
	var names []string
	for _, p := range packages {
		names = append(names, p.Name)
	}
	wanted := strings.Join(names, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install %s: this is not Debian (apt-get not found); install the packages manually, so "+
			"that %s exist", wanted, files(packages))
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, names...)...)
}

func files(packages []Package) string {
	var all []string
	for _, p := range packages {
		all = append(all, p.File)
	}
	return strings.Join(all, " ")
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
}
