package sandbox

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestMain runs the tests or, if SEAL_TEST_ROLE is set, the code of that child
// role. Each child is a process of its own, because a closed sandbox can't be
// opened again.
func TestMain(m *testing.M) {
	role, rest, _ := strings.Cut(os.Getenv("SEAL_TEST_ROLE"), ":")
	var o Options
	if raw := os.Getenv("SEAL_TEST_OPTIONS"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &o); err != nil {
			panic(err)
		}
	}
	switch role {
	case "":
		flag.Parse()
		os.Exit(m.Run())
	case "bare":
		report(runProbes(o))
	case "sandboxed":
		onEarlyThreads := onThreads(3)
		err := closeSandbox(o)
		report(err, errors.Join(runProbes(o), onEarlyThreads(func() error { return runProbes(o) })))
	case "allowed probe":
		noNewPrivs()
		probes = []probe{{name: "ask for the pid", number: unix.SYS_GETPID}}
		_, err := Close(o, false)
		report(err)
	case "act":
		report(closeSandbox(o), runAnyDeathTest(rest))
	case "acts in audit":
		err := closeSandbox(o)
		for _, name := range deathTestsOf(o.Kind) {
			if !strings.Contains(name, "x32") {
				err = errors.Join(err, runAnyDeathTest(name))
			}
		}
		report(err)
	case "files":
		onEarlyThreads := onThreads(3)
		noNewPrivs()
		on, err := denyFiles(o)
		report(err, fmt.Errorf("on: %s", on), tryDenied(onEarlyThreads))
	case "older":
		noNewPrivs()
		version, err := landlockVersion()
		for v := 1; v <= version && err == nil; v++ {
			_, err = denyAs(o, v)
		}
		report(err)
	case "divided":
		report(filterOneThread())
	case "foreign":
		report(call32Bit())
	case "serve":
		report(serve(o))
	case "cost":
		report(cost())
	case "reconnect":
		report(reconnect())
	case "dispatch":
		report(dispatch())
	}
}

// report prints the results for the test, and then "end", which shows that the
// child has reached its end.
func report(list ...error) {
	for _, err := range list {
		fmt.Println(err)
	}
	fmt.Println("end")
	os.Exit(0)
}

const withCgo = "this test binary was built with cgo: no_new_privs can't reach all threads, and its threads are others"

func noNewPrivs() {
	switch _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e {
	case 0:
	case syscall.ENOTSUP:
		fmt.Println(withCgo)
		os.Exit(1)
	default:
		panic(e)
	}
}

func closeSandbox(o Options) error {
	noNewPrivs()
	return installFilter(o)
}

// onThreads starts n threads, and returns a function. That function calls its
// argument f on each of these threads, one after the other.
func onThreads(n int) func(func() error) error {
	work, results := make(chan func() error), make(chan error)
	started := make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			started <- true
			results <- (<-work)()
			select {} // otherwise the next goroutine might run on this thread
		}()
		<-started
	}
	return func(f func() error) error {
		var list []error
		for range n {
			work <- f
			list = append(list, <-results)
		}
		return errors.Join(list...)
	}
}

// child runs this binary in the given role, and returns its output and its wait
// status.
func child(t testing.TB, role string, o Options, as *syscall.Credential) (string, syscall.WaitStatus) {
	t.Helper()
	options, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // the sandboxed child can't remove the files that it created
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"SEAL_TEST_ROLE=" + role, "TMPDIR=" + dir, "SEAL_TEST_OPTIONS=" + string(options), "GODEBUG=containermaxprocs=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.ExtraFiles = []*os.File{channelWithDescriptor(t)} // descriptor 3, as for a worker
	runtime.LockOSThread()                                // Pdeathsig depends on the thread
	defer runtime.UnlockOSThread()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if strings.Contains(string(out), withCgo) {
		t.Skip(withCgo)
	}
	return string(out) + stderr.String(), cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// channelWithDescriptor returns a channel in which a message with a descriptor
// is waiting.
func channelWithDescriptor(t testing.TB) *os.File {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	t.Cleanup(func() { near.Close(); far.Close() })
	if err := unix.Sendmsg(fds[0], []byte("x"), unix.UnixRights(0), nil, 0); err != nil {
		t.Fatal(err)
	}
	return far
}

// everyUser runs a test as the current user and, if that is root, also as an
// ordinary user.
func everyUser(t *testing.T, test func(*testing.T, *syscall.Credential)) {
	t.Run("as the current user", func(t *testing.T) { test(t, nil) })
	if os.Geteuid() == 0 {
		t.Run("as an ordinary user", func(t *testing.T) { test(t, &syscall.Credential{Uid: 4321, Gid: 4322}) })
	}
}

func checkSurvived(t *testing.T, out string, status syscall.WaitStatus) {
	t.Helper()
	if !status.Exited() || status.ExitStatus() != 0 || !strings.HasSuffix(out, "end\n") {
		t.Fatalf("ended with %v: %s", describe(status), out)
	}
}

func describe(s syscall.WaitStatus) string {
	if s.Signaled() {
		return s.Signal().String()
	}
	return fmt.Sprint("status ", s.ExitStatus())
}

// TestTry checks that each probe has its expected result in the sandbox. It
// tries each table with and without audit mode. Threads that were started
// before the sandbox was closed must get the same results.
func TestTry(t *testing.T) {
	everyUser(t, func(t *testing.T, as *syscall.Credential) {
		for name, o := range allOptions {
			for _, audit := range []bool{false, true} {
				o.Audit = audit
				out, status := child(t, "sandboxed", o, as)
				checkSurvived(t, out, status)
				if out != "<nil>\n<nil>\nend\n" {
					t.Errorf("%s, audit %t: %s", name, audit, out)
				}
			}
		}
	})
}

// TestTryFinds checks that runProbes, in a process without the filter, reports
// every probe as allowed. The test ignores probes that the kernel does not
// support, or that it denies to this user even without the filter.
func TestTryFinds(t *testing.T) {
	everyUser(t, func(t *testing.T, as *syscall.Credential) {
		out, status := child(t, "bare", Options{}, as)
		checkSurvived(t, out, status)
		unsupported := []string{"make a socket: packet", "make a socket: kernel crypto", "make a socket: vsock", "make a socket: netlink"} // the kernel may lack these families, or deny them
		if as != nil || os.Geteuid() != 0 {
			unsupported = append(unsupported, "become uid 0", "become gid 0", "set supplementary groups")
		}
		for _, name := range Probes(Options{}) {
			if !strings.Contains(out, name+" (") && !slices.Contains(unsupported, name) {
				t.Errorf("try did not report %q", name)
			}
		}
	})
}

// TestCloseProves checks that Close fails if an operation that the sandbox must
// forbid is allowed.
func TestCloseProves(t *testing.T) {
	out, status := child(t, "allowed probe", Options{}, nil)
	checkSurvived(t, out, status)
	if !strings.Contains(out, "ask for the pid (done)") {
		t.Errorf("Close did not try the operation: %s", out)
	}
}

// TestActsKill checks that SIGSYS kills a process that makes one of the calls
// that deathTestsOf lists, unless the process's table allows the call.
func TestActsKill(t *testing.T) {
	tables := map[string]Options{"worker": {}, "keeper": {Kind: Keeper}, "dispatcher": {Kind: Dispatcher}}
	if testing.Short() {
		delete(tables, "keeper")
	}
	for table, o := range tables {
		var allowed []string
		switch o.Kind {
		case Keeper: // it has no clients, and detects workers that send descriptors
			allowed = []string{"recvmsg from a client"}
		case Dispatcher:
			allowed = []string{"recvmsg from a client", "sendmsg", "close of the channel to the parent", "close of it with more than 32 bits"}
		}
		for _, name := range deathTestsOf(o.Kind) {
			if slices.Contains(allowed, name) {
				continue
			}
			t.Run(table+"/"+name, func(t *testing.T) {
				t.Parallel()
				out, status := child(t, "act:"+name, o, nil)
				if !status.Signaled() || status.Signal() != unix.SIGSYS || out != "" {
					t.Errorf("ended with %s: %s", describe(status), out)
				}
			})
		}
	}
}

// TestActsInAudit checks that in audit mode a process survives the calls that
// TestActsKill makes. This shows that in TestActsKill the filter kills the
// process, and that the parent's death tests do no harm if there is no filter.
func TestActsInAudit(t *testing.T) {
	everyUser(t, func(t *testing.T, as *syscall.Credential) {
		for _, kind := range []Kind{Worker, Dispatcher} {
			out, status := child(t, "acts in audit", Options{Kind: kind, Audit: true}, as)
			checkSurvived(t, out, status)
			for _, name := range deathTestsOf(kind) {
				if !strings.Contains(name, "x32") && !strings.Contains(out, name+" returned") {
					t.Errorf("kind %d, %s: the call did not return", kind, name)
				}
			}
		}
	})
}

// TestDivided checks that installFilter returns an error if one thread already
// has another filter, and that the error names the thread.
func TestDivided(t *testing.T) {
	out, status := child(t, "divided", Options{}, nil)
	checkSurvived(t, out, status)
	var thread int
	if _, err := fmt.Sscanf(out, "install the system call filter: thread %d already has another filter", &thread); err != nil || thread == 0 {
		t.Errorf("got %q", out)
	}
}

// filterOneThread installs, on one thread only, a filter that allows
// everything.
func filterOneThread() error {
	noNewPrivs()
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		all := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
		f := unix.SockFprog{Len: 1, Filter: &all[0]}
		_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f)))
		if e != 0 {
			ready <- e
		}
		ready <- nil
		select {}
	}()
	runtime.LockOSThread()
	if err := <-ready; err != nil {
		return err
	}
	return installFilter(Options{})
}

// TestForeign checks that a 32-bit system call kills the process. In the 64-bit
// table, the number of such a call stands for a different call, so the filter
// must not look it up there.
func TestForeign(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 can make such calls in the same process")
	}
	out, status := child(t, "foreign", Options{}, nil)
	if !strings.Contains(out, called32Bit) && strings.Contains(out, "SIGSEGV") {
		t.Skip("needs a kernel that runs 32-bit programs (CONFIG_IA32_EMULATION)")
	}
	if !status.Signaled() || status.Signal() != unix.SIGSYS {
		t.Errorf("ended with %s: %s", describe(status), out)
	}
}

// called32Bit is what call32Bit prints if the kernel permits 32-bit calls.
const called32Bit = "made a 32-bit call"

// call32Bit calls the 32-bit getpid, with code in memory that was made
// executable before the sandbox was closed.
func call32Bit() error {
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3}) // mov eax, 20; int 0x80; ret
	code := &page[0]
	call := *(*func())(unsafe.Pointer(&struct{ p unsafe.Pointer }{unsafe.Pointer(&code)}))
	call() // this call works, so only the filter can kill the process at the call below
	fmt.Println(called32Bit)
	if err := closeSandbox(Options{}); err != nil {
		return err
	}
	call()
	return errors.New("answered")
}
