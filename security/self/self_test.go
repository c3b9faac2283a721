package self

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
)

// TestMain runs the tests or, if SECURITY_TEST_ROLE is set, the code of a
// child, which confines itself.
func TestMain(m *testing.M) {
	if os.Getenv("SECURITY_TEST_ROLE") == "" {
		if err := security.CloseInherited(); err != nil { // the process that started the tests may have left a descriptor open
			panic(err)
		}
		os.Exit(m.Run())
	}
	err := errors.Join(LimitTasks(4096), Confine(512, false))
	p, err2 := measure()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"attributes": p, "errors": fmt.Sprint(err, err2)})
}

func TestCompare(t *testing.T) {
	want := Attributes{"uid": "9 9 9 9", "dumpable": "0", "ns_net": "net:[1]", "ns_ipc": otherThan + ("ipc:[1]"), "ns_user": otherThan + ("user:[1]")}
	got := Attributes{"uid": "9 9 9 9", "dumpable": "1", "extra": "x", "ns_ipc": "ipc:[1]", "ns_user": "user:[2]"}
	list := []string{
		`dumpable is "1", expected "0"`,
		`extra is "x", expected nothing`,
		`ns_ipc is "ipc:[1]", expected "other than ipc:[1]"`,
		`ns_net could not be measured, expected "net:[1]"`,
	}
	if diff := cmp.Diff(list, compare(want, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(want, "ns_ipc")
	delete(want, "ns_user")
	if got := compare(want, want); got != nil {
		t.Errorf("got %q, want no differences", got)
	}
}

// TestConfineShows checks that a process that confines itself has the
// attributes that expectedAttributes returns, except those that can be set only
// when a process is started.
func TestConfineShows(t *testing.T) {
	attr := &syscall.SysProcAttr{Setsid: true}
	identity := security.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if os.Geteuid() == 0 {
		identity.UID, identity.GID = 4321, 4322
		attr.Credential = &syscall.Credential{Uid: 4321, Gid: 4322, Groups: []uint32{7, 3}}
		identity.Groups = []uint32{7, 3}
	} else if groups, _ := os.Getgroups(); len(groups) > 0 {
		for _, g := range groups {
			identity.Groups = append(identity.Groups, uint32(g))
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	inherited, err := security.ReadInheritance(unix.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	expect := &ipc.Attributes{UID: identity.UID, GID: identity.GID, Groups: identity.Groups, Bounding: inherited.Bounding, Seccomp: inherited.Seccomp}
	for name, id := range inherited.Namespaces {
		expect.Namespaces = append(expect.Namespaces, ipc.Namespace{Type: name, ID: id})
	}
	want := expectedAttributes(expect, 512, 4096)
	want["descriptors"] = "0 1 2"
	got := child(t, attr)
	if got["errors"] != "<nil> <nil>" {
		if strings.Contains(fmt.Sprint(got["errors"]), "not supported") {
			t.Skip("this test binary was built with cgo: no_new_privs can't reach all threads")
		}
		t.Fatal(got["errors"])
	}
	measured := Attributes{}
	for name, value := range got["attributes"].(map[string]any) {
		measured[name] = value.(string)
	}
	if diff := cmp.Diff(want, measured); diff != "" {
		t.Errorf("(-expected +measured):\n%s", diff)
	}
}

// child runs this binary in a process that confines itself, and returns that
// process's report.
func child(t *testing.T, attr *syscall.SysProcAttr) map[string]any {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"SECURITY_TEST_ROLE=confine", "GODEBUG=containermaxprocs=0"}
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return got
}
