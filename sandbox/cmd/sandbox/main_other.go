//go:build !linux

// Command sandbox runs real Kubernetes clusters on this machine, without Docker, using programs that it builds from
// source.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "sandbox: requires Linux and root: a node consists of namespaces and cgroups, which %s "+
		"does not have; use a virtual machine\n", runtime.GOOS)
	os.Exit(1)
}
