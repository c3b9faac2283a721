package security

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// TestMain runs the tests or, if SECURITY_TEST_ROLE is set, the code of that
// child role. Some tests need such a child process.
func TestMain(m *testing.M) {
	switch role := os.Getenv("SECURITY_TEST_ROLE"); role {
	case "":
		if err := CloseInherited(); err != nil { // the process that started the tests may have left a descriptor open
			panic(err)
		}
		os.Exit(m.Run())
	case "keep", "keep and pass", "ignored":
		var pass Capabilities
		if role == "ignored" {
			if err := ignoreCapset(); err != nil {
				panic(err)
			}
		}
		if role == "keep and pass" {
			pass = Caps(unix.CAP_SETUID, unix.CAP_SYS_ADMIN) // keep has only one of the two
		}
		kept, err := KeepCapabilities(Caps(unix.CAP_SETUID, unix.CAP_KILL), pass)
		_, readErr := os.ReadFile(os.Getenv("SECURITY_TEST_FILE"))
		// A program that this process executes runs as root, like the process
		// itself.
		out, _ := exec.Command("/bin/grep", "-hE", "^(CapInh|CapPrm|CapEff|CapBnd|NoNewPrivs):", "/proc/self/status").Output()
		report(map[string]any{"kept": kept.String(), "error": fmt.Sprint(err), "read": readErr == nil, "child": string(out)})
	case "bounding":
		runtime.LockOSThread()
		dropped, err := DropBounding()
		inherited, err2 := ReadInheritance(unix.Gettid())
		out, err3 := exec.Command("/bin/grep", "CapEff", "/proc/self/status").Output()
		// A service manager may already have emptied the bounding set.
		// DropBounding then has nothing to drop, and must not fail.
		var none [2]unix.CapUserData
		err4 := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
		again, err5 := DropBounding()
		report(map[string]any{"dropped": []any{dropped, again}, "bounding": inherited.Bounding, "child": string(out), "errors": fmt.Sprint(err, err2, err3, err4, err5)})
	case "inherited":
		own, err := os.Open(os.DevNull)
		err2 := CloseInherited()
		_, gone := os.NewFile(3, "inherited").Stat()
		_, err3 := own.Stat()
		report(map[string]any{"gone": gone != nil, "errors": fmt.Sprint(err, err2, err3)})
	case "kept bounding":
		runtime.LockOSThread()
		var none [2]unix.CapUserData
		err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
		dropped, err2 := DropBounding()
		report(map[string]any{"dropped": dropped, "errors": fmt.Sprint(err, err2)})
	}
}

// ignoreCapset makes capset(2) succeed on all threads without effect.
func ignoreCapset() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CAPSET},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return fmt.Errorf("install a filter: %w", e)
	}
	return nil
}

func report(v any) {
	json.NewEncoder(os.Stdout).Encode(v)
	os.Exit(0)
}

// child runs this binary in the given role and returns its report.
func child(t *testing.T, role string, attr *syscall.SysProcAttr, env ...string) map[string]any {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append([]string{"SECURITY_TEST_ROLE=" + role, "GODEBUG=containermaxprocs=0"}, env...)
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	if role == "inherited" {
		cmd.ExtraFiles = []*os.File{os.Stderr}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%s: %v in %q", role, err, out)
	}
	return got
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes owners, capabilities")
	}
}

func TestCheckIdentity(t *testing.T) {
	root := Account{"root", 0, []uint32{0, 10}}
	sched := Account{"SchedUser sched", 990, []uint32{990, 44}}
	tests := []struct {
		name     string
		identity Identity
		want     string // "" when the identity may serve
	}{
		{"a dedicated account", Identity{Name: "rest", UID: 900, GID: 900}, ""},
		{"nobody", Identity{Name: "nobody", UID: 65534, GID: 65534}, ""},
		{"root", Identity{Name: "root", UID: 0, GID: 900}, "would serve as root"},
		{"SchedUser", Identity{Name: "sched", UID: 990, GID: 900}, "would serve as SchedUser sched"},
		{"group root", Identity{Name: "rest", UID: 900, GID: 0}, "group 0, which is a group of root"},
		{"a group that root is in", Identity{Name: "rest", UID: 900, GID: 10}, "group 10"},
		{"a group that SchedUser is in", Identity{Name: "rest", UID: 900, GID: 44}, "group 44, which is a group of SchedUser"},
		{"supplementary", Identity{Name: "rest", UID: 900, GID: 900, Groups: []uint32{5, 44}}, "supplementary group 44"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckIdentity(tt.identity, root, sched)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want == "":
			case err == nil || !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v, want %q", err, tt.want)
			case !strings.Contains(errs.HintOf(err), "-u") && !strings.Contains(errs.HintOf(err), "-g"):
				t.Errorf("no remedy in the hint: %q", errs.HintOf(err))
			}
		})
	}
}

func chown(t *testing.T, path string, uid, gid int) {
	t.Helper()
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
}

// TestKeepCapabilities checks that dropped capabilities are gone, that an
// executed program regains none of them, and that threads that still have them
// are noticed. The test's file can't be read without
// CAP_DAC_OVERRIDE.
func TestKeepCapabilities(t *testing.T) {
	needRoot(t)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	chown(t, file, 4321, 4321)
	got := child(t, "keep", nil, "SECURITY_TEST_FILE="+file)
	if strings.Contains(fmt.Sprint(got["error"]), "cgo") {
		t.Skip("this test binary was built with cgo: capabilities can't be dropped")
	}
	const none = ":\t0000000000000000\n"
	want := map[string]any{"kept": "00000000000000a0", "error": "<nil>", "read": false, "child": "CapInh" + none + "CapPrm" + none + "CapEff" + none + "CapBnd" + none + "NoNewPrivs:\t1\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const setuid = ":\t0000000000000080\n"
	want["child"] = "CapInh" + setuid + "CapPrm" + setuid + "CapEff" + setuid + "CapBnd" + none + "NoNewPrivs:\t1\n"
	if diff := cmp.Diff(want, child(t, "keep and pass", nil, "SECURITY_TEST_FILE="+file)); diff != "" {
		t.Errorf("with a capability to pass on (-want +got):\n%s", diff)
	}
	if got := child(t, "ignored", nil)["error"].(string); !strings.HasPrefix(got, "thread ") || !strings.HasSuffix(got, " after privileges were dropped") {
		t.Errorf("the kernel has dropped nothing: %s", got)
	}
}

// TestDropBounding checks that after a call of DropBounding, a child process
// gets no capabilities, even if it runs as root.
func TestDropBounding(t *testing.T) {
	needRoot(t)
	got := child(t, "bounding", nil)
	want := map[string]any{
		"dropped": []any{true, true}, "bounding": "0000000000000000", "child": "CapEff:\t0000000000000000\n",
		"errors": "<nil> <nil> <nil> <nil> <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = child(t, "kept bounding", nil)
	if diff := cmp.Diff(map[string]any{"dropped": false, "errors": "<nil> <nil>"}, got); diff != "" {
		t.Errorf("without the capability to (-want +got):\n%s", diff)
	}
}

// TestCloseInherited checks that inherited descriptors are closed and that
// descriptors that the process opened itself stay open.
func TestCloseInherited(t *testing.T) {
	if diff := cmp.Diff(map[string]any{"gone": true, "errors": "<nil> <nil> <nil>"}, child(t, "inherited", nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnreadableNamespace checks that ReadInheritance returns an error if the
// kernel does not reveal a namespace.
func TestUnreadableNamespace(t *testing.T) {
	dir := t.TempDir() + "/"
	for name, content := range map[string]string{"status": "CapBnd:\t0\n", "ns/ipc": "no link"} {
		if err := os.MkdirAll(filepath.Dir(dir+name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("pid:[1]", dir+"ns/pid_for_children"); err != nil {
		t.Fatal(err)
	}
	if got, err := readInheritance(dir); err == nil || !strings.Contains(err.Error(), "read the ipc namespace") {
		t.Errorf("%+v, %v", got, err)
	}
}
