// Command probe is the program that runs in the sandbox's own pods. "probe pause" holds a pod's namespaces. "probe
// serve" is the server behind a Service. "probe client" reports over HTTP whether its pod can reach that Service by
// name.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const answer = "quorate-sandbox"

func main() {
	role := "pause"
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	if err := run(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(role string) error {
	switch role {
	case "pause":
		pause()
		return nil
	case "serve":
		return serve(":8080", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
	case "client":
		return serve(":8080", check(os.Args[2]))
	default:
		return fmt.Errorf("unknown role %q: expected pause, serve or client", role)
	}
}

// pause reaps the pod's orphaned processes until it receives SIGINT or SIGTERM.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}

func serve(address string, handler http.HandlerFunc) error {
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ended.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return fmt.Errorf("serve %s: %w", address, err)
	}
	return nil
}

// check returns a handler that responds with status 200 if a new request to url returns answer.
func check(url string) http.HandlerFunc {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(w http.ResponseWriter, _ *http.Request) {
		got, err := get(client, url)
		if err == nil && got != answer {
			err = fmt.Errorf("get %s: unexpected response %q, expected %q", url, got, answer)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

func get(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return string(body), err
}
