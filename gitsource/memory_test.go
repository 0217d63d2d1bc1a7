package gitsource

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/storage/memory"

	"quorate.dev/quorate/gitsource/manifests/confined/confinedtest"
	"quorate.dev/quorate/gitsource/refs"
)

const (
	childReads  = "QUORATE_TEST_READS"
	childClones = "QUORATE_TEST_CLONES"
)

// TestMain runs the tests. In a child process, it instead reads or clones a repository and prints the peak memory use.
func TestMain(m *testing.M) {
	if location := os.Getenv(childReads); location != "" {
		o, err := Options{Location: location}.normalized()
		var desired Desired
		if err == nil {
			_, desired, err = fetchHere(context.Background(), o, refs.Revision{}, readFiles)
		}
		if err == nil && len(desired.Clusters) != 1 {
			err = fmt.Errorf("clusters %v, problems %v", desired.Clusters, desired.Problems)
		}
		os.Exit(printPeak(err))
	}
	if location := os.Getenv(childClones); location != "" {
		_, err := git.Clone(memory.NewStorage(), nil, &git.CloneOptions{URL: location, Depth: 1, SingleBranch: true, Tags: git.NoTags})
		os.Exit(printPeak(err))
	}
	os.Exit(m.Run())
}

var peak = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

func printPeak(err error) int {
	status, statusErr := os.ReadFile("/proc/self/status")
	if err != nil || statusErr != nil {
		fmt.Fprintln(os.Stderr, err, statusErr)
		return 1
	}
	fmt.Fprintln(os.Stdout, peak.FindString(string(status)))
	return 0
}

// peakOf returns the peak memory, in MiB, of a child process that reads or clones.
func peakOf(t testing.TB, what, location string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), what+"="+location)
	out, err := cmd.CombinedOutput()
	found := peak.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kibibytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes >> 10
}

// addNoise adds commits with incompressible files, different in each commit.
func (r *repository) addNoise(commits, files, bytes int) {
	r.T.Helper()
	r.Git("config", "core.compression", "0")
	r.Git("config", "pack.window", "0")
	r.Git("config", "core.fsync", "none")
	input, output := io.Pipe()
	go func() {
		defer output.Close()
		from := "from refs/heads/main^0\n"
		for range commits {
			fmt.Fprintf(output, "commit refs/heads/main\ncommitter a <a@example.com> 1800000000 +0000\ndata 1\nx\n%s", from)
			for i := range files {
				fmt.Fprintf(output, "M 100644 inline noise-%d.bin\ndata %d\n", i, bytes)
				_, _ = io.CopyN(output, rand.Reader, int64(bytes))
				fmt.Fprintln(output)
			}
			from = ""
		}
	}()
	cmd := exec.CommandContext(r.T.Context(), "git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = r.Dir, input
	if out, err := cmd.CombinedOutput(); err != nil {
		r.T.Fatalf("%v\n%s", err, out)
	}
}

// TestFetchMemoryIsBounded checks that files outside the path do not have to fit into memory.
func TestFetchMemoryIsBounded(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	if confinedtest.RaceDetector {
		t.Skip("the race detector uses more memory than the measured code")
	}
	r := newRepository(t)
	r.Declare("a")
	r.addNoise(1, 8, 4<<20)
	location := r.Serve()
	const bound = 72 // MiB, including the process itself
	ours, naive := peakOf(t, childReads, location), peakOf(t, childClones, location)
	t.Logf("32 MiB of files: %d MiB, and %d MiB if they are kept in memory", ours, naive)
	if ours > bound || naive <= bound {
		t.Errorf("%d MiB, and %d MiB if everything is kept in memory; want at most %d MiB, and more", ours, naive, bound)
	}
}

// BenchmarkMemory measures the memory used for a repository of one gibibyte: half in the newest commit, half in its
// history.
func BenchmarkMemory(b *testing.B) {
	r := newRepository(b)
	r.Declare("a")
	r.addNoise(2, 120, 4<<20)
	location := r.Serve()
	for b.Loop() {
		b.ReportMetric(float64(peakOf(b, childReads, location)), "MiB")
		b.ReportMetric(float64(peakOf(b, childClones, location)), "MiB-go-git")
	}
}
