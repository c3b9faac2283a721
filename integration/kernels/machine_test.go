// Package kernels boots kernels of several versions and architectures in
// virtual machines, checks the confinement of workers there, and runs the tests
// of the packages that implement the confinement. The script "kernel" fetches a
// kernel. The program guest is the first process in a virtual machine.
//
// "make integration-kernels" runs these tests. Environment variables control
// them:
//
//   - KERNEL selects the kernel by Debian suite and architecture, such as
//     trixie/arm64. If KERNEL is not set, TestKernel is skipped.
//   - KERNELS_REQUIRED=1 turns skips into failures.
//   - KERNELS_STEPS=REGEXP selects the steps.
//   - KERNELS_TESTS='.' runs all tests of integration/privsep.
//   - KERNELS_ACCEL=kvm uses this machine's processor.
package kernels

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/kernels/plan"
)

// machine is a virtual machine.
type machine struct {
	arch      string
	kernel    string // path of the kernel
	modules   string // directory of the kernel's modules that are loaded
	files     string // path of its first file system
	outputDir string // directory for its output
	results   map[string]plan.Result
}

// emulated maps each architecture to the qemu program, the machine and the
// processor that qemu emulates, and the machine's console.
var emulated = map[string]struct{ program, board, processor, console string }{
	"amd64": {"qemu-system-x86_64", "q35", "max,-cx16", "ttyS0"}, // cmpxchg16b of qemu 7.2 sets wrong flags, which crashes Linux 6.12
	"arm64": {"qemu-system-aarch64", "virt,gic-version=3", "max", "ttyAMA0"},
}

// missing is the error that reports what a test needs but this machine lacks.
type missing struct{ reason string }

func (e missing) Error() string { return e.reason }

// prepare fetches the kernel and builds the files for the virtual machine.
func prepare(name, dir string) (*machine, error) {
	suite, arch, _ := strings.Cut(name, "/")
	arch, _, _ = strings.Cut(arch, "/")
	if suite == "" {
		return nil, missing{"KERNEL names no kernel to boot"}
	}
	board, known := emulated[arch]
	if !known {
		return nil, fmt.Errorf("KERNEL=%s: no machine of that architecture is known", name)
	}
	for _, program := range []string{board.program, "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, missing{program + " is not installed; apt-get install qemu-system-x86 qemu-system-arm"}
		}
	}
	cmd := exec.Command("./kernel", name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	from := strings.TrimSpace(string(out))
	m := &machine{arch: arch, kernel: from + "/vmlinuz", modules: from + "/modules", outputDir: from, files: dir + "/files"}
	return m, m.writeFiles(from+"/busybox", dir)
}

// testPackage is a package whose tests are run in the machine.
type testPackage struct {
	name      string
	as        []uint32 // users that run the tests
	run, skip []string // names without "Test", or regular expressions for such names; if run is empty, all tests run
	env       []string
}

// testPackages lists the packages whose tests are run. Of the tests of whole
// gateways, only those whose results depend on the kernel are run. The others
// are about the order of events between processes, and would take half a day on
// an emulated processor.
var testPackages = []testPackage{
	{name: "integration/privsep", as: []uint32{0, 1000}, run: strings.Fields(`
		NamespacesAlone WorkerIsConfined KeeperIsConfined ParentPrivileges UnprivilegedStart RootWorkerByWish StartsFrom0700
		ConfinementLine Check.* DeathTests.* Captured CapturedConnects CapturedAsksTheKeeper NamespaceInit.* ParentGone ParentDies
		EachUserHisProcess ProcessLimit NoThreadLeft ThreadsOfAWorker PeerFacts HTTPS KeyStaysInTheKeeper`),
		skip: []string{"CheckSaysWhy"}}, // busybox's setpriv can't change the user
	{name: "integration/clock", as: []uint32{0}, env: []string{"CLOCK_MAY_JUMP=1", "INTEGRATION_BIN=/usr/local/sbin"}},
	{name: "privsep/spawn", as: []uint32{0, 1000}},
	{name: "privsep/listen", as: []uint32{0, 1000}},
	{name: "gateway/dispatcher/dial", as: []uint32{0, 1000}},
	{name: "internal/notify", as: []uint32{1000}},
	{name: "security", as: []uint32{0, 1000}},
	{name: "security/sandbox", as: []uint32{0, 1000}},
	{name: "become", as: []uint32{0, 1000}},
	{name: "internal/socket", as: []uint32{0, 1000}},
	{name: "ipc", as: []uint32{1000}, skip: []string{"TableIsSound", "EveryRowIsHeard", "PageShowsTheTable"}}, // they read the sources of other packages
}

// flags returns the flags that select the package's tests.
func (p testPackage) flags() (flags []string) {
	if len(p.run) > 0 {
		flags = append(flags, "-test.run", cmp.Or(os.Getenv("KERNELS_TESTS"), testPattern(p.run)))
	}
	if len(p.skip) > 0 {
		flags = append(flags, "-test.skip", testPattern(p.skip))
	}
	return flags
}

// testPattern returns a regular expression for the names of tests.
func testPattern(names []string) string { return "^Test(" + strings.Join(names, "|") + ")$" }

// writeFiles writes the first file system.
func (m *machine) writeFiles(shell, dir string) error {
	to, err := os.Create(m.files)
	if err != nil {
		return err
	}
	defer to.Close()
	w := bufio.NewWriter(to)
	a := &archive{w: w}
	a.dir("tmp", 0o777)
	for name, text := range etc {
		a.file("etc/"+name, 0o644, []byte(text))
	}
	add := func(from, name string, mode uint32) {
		text, err := os.ReadFile(from)
		a.err = errors.Join(a.err, err)
		a.file(name, mode, text)
	}
	add(shell, "bin/busybox", 0o755)
	for _, name := range plan.Modules {
		add(m.modules+"/"+name+".ko", "modules/"+name+".ko", 0o644)
	}
	for _, name := range []string{"sh", "cat", "grep", "sleep", "kill", "true", "chown", "chmod", "chgrp", "id", "ls"} {
		a.link("bin/"+name, "busybox")
	}
	build := func(args ...string) error {
		cmd := exec.Command("go", args...)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "GOARCH="+m.arch, "GOOS=linux", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w\n%s", args, err, out)
		}
		return nil
	}
	if err := build("build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+"/", "./cmd/...", "./integration/kernels/guest"); err != nil {
		return err
	}
	add(dir+"/guest", "init", 0o755)
	for _, name := range []string{"schedrestd", "schedctl", "schedctld", "scheddbd"} {
		add(dir+"/"+name, "usr/local/sbin/"+name, 0o755)
	}
	programs, _ := filepath.Glob(dir + "/schedrestd-*")
	for _, path := range programs {
		add(path, "usr/local/sbin/"+filepath.Base(path), 0o711)
	}
	for _, p := range testPackages {
		name := p.name
		test := dir + "/test"
		if err := build("test", "-c", "-ldflags=-s -w", "-o", test, "./"+name); err != nil {
			return err
		}
		add(test, "src/"+name+"/test", 0o755)
		for _, pattern := range []string{"testdata/*", "testdata/fuzz/*/*", "*.go"} { // files that the tests read
			list, _ := filepath.Glob("../../" + name + "/" + pattern)
			for _, path := range list {
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
					add(path, "src/"+strings.TrimPrefix(path, "../../"), 0o644)
				}
			}
		}
	}
	pages, _ := filepath.Glob("../../docs/*.md")
	deeper, _ := filepath.Glob("../../docs/*/*.md")
	for _, path := range slices.Concat(pages, deeper, []string{"../../go.mod"}) {
		add(path, "src/"+strings.TrimPrefix(path, "../../"), 0o644)
	}
	if err := writeProfiles(a); err != nil {
		return err
	}
	text, err := json.Marshal(steps())
	if err != nil {
		return err
	}
	a.file("plan", 0o644, text)
	if err := a.finish(); err != nil {
		return err
	}
	return w.Flush()
}

// boot starts the machine, waits until it has switched itself off, and collects
// the results.
func (m *machine) boot(limit time.Duration, onResult func(plan.Result)) error {
	board := emulated[m.arch]
	accelerator := cmp.Or(os.Getenv("KERNELS_ACCEL"), "tcg,thread=multi") // in a virtual machine, /dev/kvm often does not work
	runtime.LockOSThread()                                                // qemu is killed when this thread exits
	defer runtime.UnlockOSThread()
	cmd := exec.Command("nice", board.program, "-machine", board.board, "-cpu", board.processor, "-accel", accelerator, "-smp", "2", "-m", "2048",
		"-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio", "-kernel", m.kernel, "-initrd", m.files,
		"-append", "console="+board.console+" quiet loglevel=1 panic=-1 rdinit=/init")
	log, err := os.Create(m.outputDir + "/console")
	if err != nil {
		return err
	}
	defer log.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	readErr := m.readConsole(io.TeeReader(out, log), onResult)
	return errors.Join(readErr, cmd.Wait())
}

// readConsole reads the console to its end.
func (m *machine) readConsole(console io.Reader, onResult func(plan.Result)) error {
	m.results = map[string]plan.Result{}
	var packed strings.Builder
	done := false
	lines := bufio.NewScanner(console)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		switch {
		case strings.HasPrefix(line, plan.Failed):
			return errors.New(line)
		case line == plan.Done:
			done = true
		case strings.HasPrefix(line, plan.Note):
			fmt.Println("         ", strings.TrimPrefix(line, plan.Note))
		case strings.HasPrefix(line, plan.Begin):
			packed.Reset()
		case strings.HasPrefix(line, plan.Part):
			packed.WriteString(line[len(plan.Part):])
		case line == plan.End:
			r, err := unpack(packed.String())
			if err != nil {
				return fmt.Errorf("the console garbled a result: %w", err)
			}
			m.results[r.Name] = r
			onResult(r)
		}
	}
	if !done {
		return errors.Join(errors.New("the machine ended before its work did"), lines.Err())
	}
	return lines.Err()
}

func unpack(text string) (r plan.Result, err error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return r, err
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	return r, json.NewDecoder(z).Decode(&r)
}

// bootMachine boots the machine, and returns it with the results of its steps.
func bootMachine(t *testing.T) *machine {
	t.Helper()
	m, err := prepare(os.Getenv("KERNEL"), t.TempDir())
	if absent, ok := errors.AsType[missing](err); ok && os.Getenv("KERNELS_REQUIRED") == "" {
		t.Skip(absent)
	}
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := m.boot(2*time.Hour, func(r plan.Result) {
		fmt.Printf("%6.1f s: %s took %.1f s, exit status %d\n", time.Since(start).Seconds(), r.Name, r.Took.Seconds(), r.Status)
		name := strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(r.Name)
		_ = os.WriteFile(filepath.Join(m.outputDir, name), r.Output, 0o644)
	}); err != nil {
		t.Fatalf("%v: %s/console has its output", err, m.outputDir)
	}
	return m
}
