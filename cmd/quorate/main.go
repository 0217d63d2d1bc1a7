// Quorate reconciles etcd clusters on Kubernetes with the declarations in a git repository.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // for images that do not contain certificate authorities

	"quorate.dev/quorate/gitsource/manifests/confined"
)

func main() {
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	ownProcess = true
	boundMemory()
	confined.Hide()
	return execute(ctx, os.Args[1:], streams{out: os.Stdout, err: os.Stderr})
}
