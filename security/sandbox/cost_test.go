package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkFilter measures the cost of the filter. Each round runs in a process
// of its own, which closes its sandbox. The results are the medians of all
// rounds. If a call is allowed whatever its arguments are, such as getuid, the
// kernel remembers this and does not run the filter. For other calls, such as
// fcntl, the filter runs each time.
func BenchmarkFilter(b *testing.B) {
	all := map[string][]float64{}
	for b.Loop() {
		out, status := child(b, "cost", Options{}, nil)
		if !strings.HasSuffix(out, "end\n") {
			b.Fatalf("%s: %s", describe(status), out)
		}
		for line := range strings.Lines(strings.TrimSuffix(out, "end\n")) {
			var name string
			var ns float64
			if _, err := fmt.Sscanf(line, "%s %f", &name, &ns); err != nil {
				b.Fatalf("%v in %q", err, line)
			}
			all[name] = append(all[name], ns)
		}
	}
	for name, list := range all {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name)
	}
}

func cost() error {
	noNewPrivs()
	var list []error
	took := func(name string, f func() error) {
		start := time.Now()
		err := f()
		list = append(list, fmt.Errorf("%s-ns %d", name, time.Since(start)), err)
	}
	each := func(name string, number, arg uintptr) {
		const calls = 20000
		start := time.Now()
		for range calls {
			unix.RawSyscall(number, 0, arg, 0)
		}
		list = append(list, fmt.Errorf("%s-ns/call %d", name, time.Since(start)/calls))
	}
	each("getuid-before", unix.SYS_GETUID, 0)
	each("fcntl-before", unix.SYS_FCNTL, unix.F_GETFD)
	took("landlock", func() error { _, err := denyFiles(Options{}); return err })
	took("filter", func() error { return installFilter(Options{}) })
	took("try", func() error { return runProbes(Options{}) })
	each("getuid-after", unix.SYS_GETUID, 0)
	each("fcntl-after", unix.SYS_FCNTL, unix.F_GETFD)
	return errors.Join(list...)
}
