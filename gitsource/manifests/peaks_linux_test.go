package manifests

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// reportPeaks reports the peak memory of this process and its children, in MiB.
func reportPeaks(b *testing.B) {
	b.Helper()
	var children syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(children.Maxrss)/1024, "MiB-child-peak")
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // /proc is not available
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if peak, err := strconv.ParseFloat(strings.Fields(after)[0], 64); err == nil {
		b.ReportMetric(peak/1024, "MiB-peak")
	}
}
