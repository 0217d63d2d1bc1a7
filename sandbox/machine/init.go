//go:build linux

package machine

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/sandbox/cgroup"
)

// Run runs a machine's init. It returns only if the machine cannot start. The whole machine ends with this process.
func Run(dir string) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("run machine %s: only the sandbox can start a machine, in separate namespaces", dir)
	}
	spec, err := readSpec(dir)
	if err != nil {
		return err
	}
	if os.Getenv(isolated) == "" {
		return fmt.Errorf("start machine %s: %w", spec.Name, isolate(spec.Cgroup))
	}
	slog.Info("starting machine", "name", spec.Name)
	if err := spec.setUp(); err != nil {
		return fmt.Errorf("start machine %s: %w", spec.Name, err)
	}
	newSupervisor(spec.Processes).run()
	return nil
}

// isolated is the environment variable that is set after init has moved to its own cgroup namespace.
const isolated = "QUORATE_SANDBOX_ISOLATED"

// isolate makes group the root of the cgroups that the process and its children see, and executes the program again.
func isolate(group string) error {
	if err := cgroup.Enter(group); err != nil {
		return err
	}
	runtime.LockOSThread() // only this thread enters the namespace, so it must also execute the program
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("create a cgroup namespace: %w", err)
	}
	if err := unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), isolated+"=1")); err != nil {
		return fmt.Errorf("re-execute the program: %w", err)
	}
	return nil
}

func (s Spec) setUp() error {
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := s.mount(); err != nil {
		return err
	}
	// Cgroup v2 allows processes only in leaf groups, and containers need their own groups alongside /machine.
	if err := cgroup.Enter("/machine"); err != nil {
		return err
	}
	if err := s.writeFiles(); err != nil {
		return err
	}
	if s.Network == nil {
		return nil
	}
	if err := s.Network.configure(); err != nil {
		return err
	}
	if s.Network.Forward == "" {
		return nil
	}
	return forward(s.Network.Forward)
}

// mount gives the machine its own view of the file system. It opens all sources before it mounts anything, so that no
// mount can hide a source.
func (s Spec) mount() error {
	// Later mounts on the host become visible in the machine, but not vice versa. Within the machine, mounts propagate,
	// as the kubelet expects.
	for _, flags := range []uintptr{unix.MS_REC | unix.MS_SLAVE, unix.MS_REC | unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", flags, ""); err != nil {
			return fmt.Errorf("set the propagation of mounts: %w", err)
		}
	}
	if err := cgroup.Cover(s.Cgroup); err != nil {
		return err
	}
	mounts := append([]Mount{
		{Source: s.Dir, Target: ownDir},
		{Source: filepath.Join(s.Dir, "lib"), Target: "/var/lib"},
		{Source: filepath.Join(s.Dir, "log"), Target: LogDir},
	}, s.Mounts...)
	trees := make([]int, len(mounts))
	for i, m := range mounts {
		tree, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|
			unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("open %s: %w", m.Source, err)
		}
		trees[i] = tree
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for i, m := range mounts {
		if err := attach(trees[i], m.Target); err != nil {
			return err
		}
	}
	return nil
}

func attach(tree int, target string) error {
	defer unix.Close(tree)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("create mount point: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

func (s Spec) writeFiles() error {
	for path, content := range s.Files {
		if err := writeFile(path, content); err != nil {
			return err
		}
	}
	for path, content := range s.Masks {
		if err := mask(path, content); err != nil {
			return err
		}
	}
	// A new boot ID tells the processes of the machine that it has rebooted.
	boot, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return fmt.Errorf("generate a boot ID: %w", err)
	}
	return mask("/proc/sys/kernel/random/boot_id", string(boot))
}

func mask(path, content string) error {
	file := filepath.Join("/run/masks", path)
	if err := writeFile(file, content); err != nil {
		return err
	}
	if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mask %s: %w", path, err)
	}
	return nil
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the directory for a file of the machine: %w", err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write a file of the machine: %w", err)
	}
	return nil
}
