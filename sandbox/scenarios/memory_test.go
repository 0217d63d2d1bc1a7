package scenarios

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// watchPeak watches a process and its descendants until the process ends. The function that it returns reports the peak
// so far, which is the largest resident set size of a single process, in bytes. The kernel's figure for a process that
// has ended is not used, because it includes the parent's memory from before exec.
func watchPeak(pid int) (peak func() int64) {
	var highest atomic.Int64
	go func() {
		for isThere(pid) {
			for _, one := range processTree(pid) {
				highest.Store(max(highest.Load(), memoryOf(one, "VmHWM")))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return highest.Load
}

func isThere(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// anonymous returns the amount of anonymous memory of a process and its descendants.
func anonymous(pid int) (bytes int64) {
	for _, one := range processTree(pid) {
		bytes += memoryOf(one, "RssAnon")
	}
	return bytes
}

// memoryOf returns a figure from the status of a process, in bytes, or 0 if the process has ended.
func memoryOf(pid int, figure string) int64 {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if rest, is := strings.CutPrefix(lines.Text(), figure+":"); is {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// processTree returns the PIDs of a process and of its running descendants.
func processTree(pid int) []int {
	all := []int{pid}
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range children {
		content, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(content)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, processTree(pid)...)
			}
		}
	}
	return all
}
