// Command s3 serves a directory over the S3 protocol, for tests. Each subdirectory of the data directory in it is a
// bucket. The command exits when its standard input is closed, which happens even if the test that started it is
// killed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	var c embedgw.Config
	flag.StringVar(&c.CertFile, "cert", "", "file with the certificate (default: plain HTTP)")
	flag.StringVar(&c.KeyFile, "key", "", "file with the key of the certificate")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: s3 [-cert FILE -key FILE] DIRECTORY HOST:PORT")
		os.Exit(2)
	}
	c.Ports = flag.Args()[1:]
	if err := serve(flag.Arg(0), c); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

// serve changes to the directory and serves it. Clients authenticate with the access key in the environment.
func serve(dir string, c embedgw.Config) error {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	// Metadata is stored in the file's extended attributes, so it exists as soon as the file does.
	about := meta.XattrMeta{}
	if err := about.Test(data); err != nil {
		return fmt.Errorf("store file attributes in %s: %w", dir, err)
	}
	backend, err := posix.New(data, about, posix.PosixOpts{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c.RootUserAccess, c.RootUserSecret = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	c.Region, c.Quiet = "us-east-1", true
	c.MaxConnections, c.MaxRequests, c.MultipartMaxParts = 100, 100, 10_000
	if err := embedgw.RunVersityGW(ctx, backend, &c); ctx.Err() == nil {
		return err
	}
	return nil
}
