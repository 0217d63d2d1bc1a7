package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The fleet consists of fleetClusters clusters of fleetMembers members each, in fleetNamespaces namespaces.
const (
	fleetClusters   = 1000
	fleetNamespaces = 20
	fleetMembers    = 3
)

// BenchmarkFleet bootstraps thousands of fake members with one push, and runs passes that find nothing to do.
// QUORATE_FLEET sets the number of clusters (default: 1,000).
func BenchmarkFleet(b *testing.B) {
	f := newFleet(b)
	founded := f.quorate("run", "--until-converged", "--timeout=1h")
	quiet := f.quorate("run", "--detailed-exitcode")
	const count = 4
	shards := f.shards(count, "run", "--detailed-exitcode")
	name := func(what string) string { return fmt.Sprintf("fleet_%d_%s", f.clusters, what) }
	figure(name("founded_seconds"), founded.took.Seconds(), "s")
	figure(name("founded_cpu_seconds"), founded.cpu.Seconds(), "s")
	figure(name("founded_memory"), float64(founded.peak)/(1<<20), "MiB")
	figure(name("quiet_seconds"), quiet.took.Seconds(), "s")
	figure(name("quiet_cpu_seconds"), quiet.cpu.Seconds(), "s")
	figure(name("quiet_memory"), float64(quiet.peak)/(1<<20), "MiB")
	figure(name(fmt.Sprintf("quiet_%d_shards_seconds", count)), shards.took.Seconds(), "s")
	figure(name(fmt.Sprintf("quiet_%d_shards_cpu_seconds", count)), shards.cpu.Seconds(), "s")
	figure(name(fmt.Sprintf("quiet_%d_shards_memory", count)), float64(shards.peak)/(1<<20), "MiB")
}

// fleet is a sandbox with fake pods, and the declarations of its clusters.
type fleet struct {
	sandbox
	b        *testing.B
	source   string
	clusters int
}

func newFleet(b *testing.B) *fleet {
	b.Helper()
	f := &fleet{sandbox: sandbox{name: "fleet"}, b: b, clusters: fleetClusters, source: b.TempDir()}
	if said := os.Getenv("QUORATE_FLEET"); said != "" {
		n, err := strconv.Atoi(said)
		if err != nil {
			b.Fatalf("QUORATE_FLEET: %v", err)
		}
		f.clusters = n
	}
	if err := f.sandbox.start("--nodes=1"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := f.down(); err != nil {
			b.Error(err)
		}
	})
	f.standIn()
	f.declare()
	return f
}

// standIn fakes the node and etcd for the duration of the benchmark.
func (f *fleet) standIn() {
	f.b.Helper()
	var said bytes.Buffer
	command := exec.Command(binary("sandbox"), "fleet", "--name", f.name)
	command.Stderr = &said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		f.b.Fatal(err)
	}
	f.b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if f.b.Failed() {
			f.b.Log(end(said.String()))
		}
	})
	eventually(f.b, "the node of the fleet is ready", func() error {
		found, err := f.kube.CoreV1().Nodes().Get(f.b.Context(), "fleet", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(found.Status.Conditions) == 0 || len(found.Spec.Taints) > 0 {
			return fmt.Errorf("taints %v", found.Spec.Taints)
		}
		return nil
	})
}

// declare writes the declarations and creates their namespaces.
func (f *fleet) declare() {
	f.b.Helper()
	for n := range min(fleetNamespaces, f.clusters) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("fleet-", n)}}
		if _, err := f.kube.CoreV1().Namespaces().Create(f.b.Context(), namespace, metav1.CreateOptions{}); err != nil {
			f.b.Fatal(err)
		}
	}
	for n := range f.clusters {
		text := declaration(fmt.Sprintf("c%05d", n), modern, fmt.Sprintf("replicas: %d", fleetMembers))
		text = strings.Replace(text, "metadata:\n", fmt.Sprintf("metadata:\n  namespace: fleet-%d\n", n%fleetNamespaces), 1)
		if err := os.WriteFile(filepath.Join(f.source, fmt.Sprintf("c%05d.yaml", n)), []byte(text), 0o600); err != nil {
			f.b.Fatal(err)
		}
	}
}

// cost is the time and memory used by a run.
type cost struct {
	took, cpu time.Duration
	peak      int64 // peak resident set size, in bytes
}

// quorate runs a quorate command in the sandbox's network. After the command, nothing may be left to do.
func (f *fleet) quorate(args ...string) cost {
	f.b.Helper()
	c, err := f.run(args...)
	if err != nil {
		f.b.Fatal(err)
	}
	return c
}

// shards runs a command in count shards in parallel. It returns the time of the slowest shard, and the memory of the
// shard that uses the most.
func (f *fleet) shards(count int, args ...string) (all cost) {
	f.b.Helper()
	costs := make([]cost, count)
	var running errgroup.Group
	for i := range count {
		running.Go(func() (err error) {
			costs[i], err = f.run(append(slices.Clone(args), fmt.Sprintf("--shard=%d/%d", i, count))...)
			return err
		})
	}
	if err := running.Wait(); err != nil {
		f.b.Fatal(err)
	}
	for _, c := range costs {
		all = cost{took: max(all.took, c.took), cpu: all.cpu + c.cpu, peak: max(all.peak, c.peak)}
	}
	return all
}

func (f *fleet) run(args ...string) (cost, error) {
	args = append([]string{"exec", "--name", f.name, "--", binary("quorate")}, args...)
	args = append(args, "--source", f.source, "--etcd-access=direct", "--output=json")
	ctx, cancel := context.WithTimeout(f.b.Context(), time.Hour)
	defer cancel()
	command := exec.CommandContext(ctx, binary("sandbox"), args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	start := time.Now()
	if err := command.Start(); err != nil {
		return cost{}, err
	}
	peak := watchPeak(command.Process.Pid)
	err := command.Wait()
	c := cost{took: time.Since(start), peak: peak()}
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w\n%s", args, err, end(stderr.String()))
	}
	c.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return c, nil
}
