package confined

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/manifests/confined/confinedtest"
)

const testChild = "quorate-test-child"

func init() { Serve(testChild, misbehave) }

// misbehave does what the task requests.
func misbehave(parent *Parent, work json.RawMessage) {
	var what string
	if err := json.Unmarshal(work, &what); err != nil {
		panic(err)
	}
	what, where, _ := strings.Cut(what, " in ")
	switch what {
	case "reach":
		parent.Tell("possible: " + reachFrom(where))
	case "read":
		parent.Tell("read: " + readFrom(where))
	case "work":
		workHard()
	case "ask":
		var answer string
		parent.Ask("who?", &answer)
		parent.Tell("hello " + answer)
	case "take memory":
		takeMemory(work)
	case "take time":
		takeTime(work)
	case "descend":
		descend(work)
	case "talk":
		for {
			parent.Tell("x")
		}
	case "say much":
		parent.Tell(strings.Repeat("x", 1<<20))
	}
	parent.Tell("done")
}

// takeMemory allocates memory until it fails.
func takeMemory(all []byte) {
	for {
		all = append(all, bytes.Repeat([]byte("x"), len(all))...)
	}
}

// takeTime uses processor time, but no additional memory.
func takeTime(work []byte) {
	for i := 0; ; i++ {
		work = work[:i%2]
	}
}

func descend(path []byte) int {
	if len(path) == 0 {
		return 0
	}
	return 1 + descend(path)
}

var roomy = Limits{Memory: 96 << 20, CPU: 10 * time.Second, LineBytes: 1 << 10}

// run runs a child that carries out the named task, and returns its messages.
func run(ctx context.Context, what string, limits Limits) (said []string, err error) {
	err = Run(ctx, testChild, what, limits, func(line []byte) (any, bool, error) {
		var words string
		if err := json.Unmarshal(line, &words); err != nil {
			return nil, false, err
		}
		if words == "who?" {
			return "world", false, nil
		}
		if len(said) < 10 {
			said = append(said, words)
		}
		return nil, words == "done", nil
	})
	return said, err
}

func TestRun(t *testing.T) {
	said, err := run(t.Context(), "ask", roomy)
	if err != nil || strings.Join(said, ", ") != "hello world, done" {
		t.Errorf("output %q, error %v", said, err)
	}
}

// TestGoRuntimeWorksConfined checks that the Go runtime still works in a confined process: threads, garbage collection,
// timers, preemption, deep stacks and randomness.
func TestGoRuntimeWorksConfined(t *testing.T) {
	large := roomy
	large.Memory = 1 << 30 // the race detector needs a lot of memory
	if said, err := run(t.Context(), "work", large); err != nil || len(said) != 1 {
		t.Errorf("output %q, error %v", said, err)
	}
}

func deep(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + deep(n-1)
}

func workHard() {
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			runtime.LockOSThread() // each goroutine has its own thread, which ends with the goroutine
			timer := time.NewTimer(time.Duration(i) * time.Millisecond)
			garbage := [][]byte{}
			for n := 0; ; n++ {
				garbage = append(garbage[:n%16], make([]byte, 1<<10))
				select {
				case <-timer.C:
					_, _ = rand.Read(make([]byte, 16+deep(10_000)))
					debug.FreeOSMemory()
					return
				default:
				}
			}
		})
	}
	all.Wait()
}

// TestExceededLimitNamesItsFlag checks that an exceeded limit is reported with the flag that raises it.
func TestExceededLimitNamesItsFlag(t *testing.T) {
	short := roomy
	short.CPU = time.Nanosecond // rounded up to a second
	for what, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"take memory": {roomy, "needs more than 96 MiB of memory; raise limits.renderMemory"},
		"take time":   {short, "needs more than 1ns of CPU time; raise the source's timeout"},
		"descend":     {roomy, "does not terminate: something in it contains itself, directly or indirectly"},
	} {
		t.Run(what, func(t *testing.T) {
			if confinedtest.RaceDetector && what == "take memory" {
				t.Skip("the race detector uses more memory than the limit, and ends the process with its own message")
			}
			said, err := run(t.Context(), what, c.limits)
			var exceeded Exceeded
			if !errors.As(err, &exceeded) || err.Error() != c.want || len(said) > 0 {
				t.Errorf("output %q, error %v", said, err)
			}
		})
	}
	if _, err := run(t.Context(), "say much", roomy); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("error %v", err)
	}
}

// TestRunEndsOnErrorOrTimeout checks that the process ends if the caller's function returns an error, or if the context
// ends.
func TestRunEndsOnErrorOrTimeout(t *testing.T) {
	enough := errors.New("enough")
	if err := Run(t.Context(), testChild, "talk", roomy, func([]byte) (any, bool, error) { return nil, false, enough }); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := run(ctx, "take time", roomy); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestChildEndsWithItsParent checks that a child process exits when its parent does, even if the child is busy.
func TestChildEndsWithItsParent(t *testing.T) {
	p, err := start(t.Context(), kind{name: testChild})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(p.in, task{Limits: roomy, Task: json.RawMessage(`"talk"`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(p.out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	if err := p.command.Wait(); err == nil || p.command.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
}

// TestConfinedProcessReachesNothing checks that a confined child cannot use files, the network or programs.
func TestConfinedProcessReachesNothing(t *testing.T) {
	if os.Getenv("QUORATE_TEST_CONFINED") != "" {
		tryAll(os.Getenv("QUORATE_TEST_CONFINED"))
		return
	}
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConfinedProcessReachesNothing$")
	child.Env = []string{"QUORATE_TEST_CONFINED=" + server.URL}
	out, err := child.CombinedOutput()
	if want := "all tried\nPASS\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
	if hits.Load() != 1 {
		t.Errorf("the server was reached %d times, want once, before", hits.Load())
	}
}

// tryAll tries to use files, the network and programs, before and after confinement.
func tryAll(url string) {
	file := filepath.Join(os.TempDir(), "quorate-test-confined")
	defer os.Remove(file)
	attempts := map[string]func() error{
		"read":    func() error { _, err := os.ReadFile("/proc/self/stat"); return err },
		"write":   func() error { return os.WriteFile(file, nil, 0o600) },
		"run":     func() error { return exec.Command("/proc/self/exe", "-test.run=^$").Run() },
		"connect": func() error { return connect(url) },
	}
	for name, attempt := range attempts {
		if err := attempt(); err != nil {
			fmt.Fprintln(os.Stdout, name, "fails even unconfined:", err)
		}
	}
	if err := confine(roomy); err != nil {
		fmt.Fprintln(os.Stdout, err)
	}
	for name, attempt := range attempts {
		if attempt() == nil {
			fmt.Fprintln(os.Stdout, name, "is still possible")
		}
	}
	fmt.Fprintln(os.Stdout, "all tried")
}

func connect(url string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url) //nolint:noctx // a child has nothing that ends but itself
	if err != nil {
		return err
	}
	return response.Body.Close()
}
