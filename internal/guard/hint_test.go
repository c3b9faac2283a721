package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// TestOwnerHints checks the hints about wrong owners. If all users can enter a
// directory, the hint must make root its owner. If the current owner has no uid
// in this user namespace, the hint must not change the owner.
func TestOwnerHints(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes owners")
	}
	rule := Rule{Label: "key file", Owners: []uint32{31234, 0}, Trust: &Trust{Owners: []uint32{31234}}}
	if path := os.Getenv("GUARD_TEST_NAMESPACE"); path != "" {
		_, _, err := Open(path, rule)
		fmt.Printf("%v\n%s\n", err, errs.HintOf(err))
		os.Exit(0)
	}
	dir := t.TempDir() + "/d"
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.WriteFile(dir+"/f", nil, 0o600))
	must(t, os.Chown(dir, 31237, 0))
	for mode, want := range map[os.FileMode]string{0o755: "chown root " + dir + "  # or", 0o711: "chown root ", 0o700: "chown 31234 " + dir} {
		must(t, os.Chmod(dir, mode))
		if _, _, err := Open(dir+"/f", rule); !strings.HasPrefix(errs.HintOf(err), want) {
			t.Errorf("%04o: %v, hint %q", mode, err, errs.HintOf(err))
		}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestOwnerHints$")
	cmd.Env = []string{"GUARD_TEST_NAMESPACE=" + dir + "/f"}
	self := []syscall.SysProcIDMap{{Size: 1}} // a user namespace with only root
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: self, GidMappings: self}
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "directory "+dir+" belongs to uid 65534") || !strings.Contains(text, "map its owner in this user namespace") || strings.Contains(text, "chown") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestReadOnly checks the error about a file on a read-only file system. If
// UseTrialFiles has chosen another file, the error must name the configured one.
func TestReadOnly(t *testing.T) {
	if path := os.Getenv("GUARD_TEST_READ_ONLY"); path != "" {
		must(t, unix.Mount("tmpfs", filepath.Dir(path), "tmpfs", unix.MS_RDONLY, ""))
		trial := path
		defer UseTrialFiles(&trial)()
		_, _, err := Open(trial, Rule{Label: "audit log", CreateFlags: os.O_WRONLY})
		err = CreationError(trial, err)
		fmt.Printf("%v\n%s\n", err, errs.HintOf(err))
		os.Exit(0)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts a file system")
	}
	path := t.TempDir() + "/log"
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestReadOnly$")
	cmd.Env = []string{"GUARD_TEST_READ_ONLY=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if want := "audit log " + path + ": read-only file system\nfindmnt -T " + filepath.Dir(path) + "  # a systemd unit may write only "; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v\n%s\nwant %s", err, out, want)
	}
}

// TestTrustedHints checks files that other users could change because of the
// owner or mode of the file, its directory or the directory above. The test
// runs the hint of each refusal until the file is accepted.
func TestTrustedHints(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes owners")
	}
	const owner, stranger = 31234, 31237
	rules := map[string]Rule{"secret": {Label: "key file", Secret: true}, "public": {Label: "key set"}}
	spoilt := map[string]func(top, dir, file string){
		"another user's directory":       func(_, dir, _ string) { os.Chown(dir, stranger, 0); os.Chmod(dir, 0o700) },
		"another user's directory above": func(top, _, _ string) { os.Chown(top, stranger, 0); os.Chmod(top, 0o700) },
		"a group's directory":            func(_, dir, _ string) { os.Chown(dir, 0, stranger); os.Chmod(dir, 0o770) },
		"a group's directory above":      func(top, _, _ string) { os.Chown(top, 0, stranger); os.Chmod(top, 0o770) },
		"everybody's directory":          func(_, dir, _ string) { os.Chmod(dir, 0o777) },
		"another user's file":            func(_, _, file string) { os.Chown(file, stranger, 0) },
		"a file of root for others too":  func(_, _, file string) { os.Chmod(file, 0o666) },
		"all of it": func(top, dir, file string) {
			for _, at := range []string{top, dir, file} {
				os.Chown(at, stranger, stranger)
				os.Chmod(at, 0o777)
			}
		},
	}
	for kind, rule := range rules {
		for name, spoil := range spoilt {
			t.Run(kind+", "+name, func(t *testing.T) {
				rule.Owners = []uint32{owner, 0}
				rule.Trust = &Trust{Owners: rule.Owners}
				top := t.TempDir()
				dir := top + "/a key's"
				must(t, os.Mkdir(dir, 0o755))
				path := file("k", 0o600)(t, dir)
				if _, _, err := read(path, rule, 100); err != nil {
					t.Fatal(err)
				}
				spoil(top, dir, path)
				refusals := 0
				for ; ; refusals++ {
					_, _, err := read(path, rule, 100)
					if err == nil {
						break
					}
					hint := errs.HintOf(err)
					if out, err := exec.Command("/bin/sh", "-c", hint).CombinedOutput(); err != nil || refusals > 9 || hint == "" {
						t.Fatalf("%q: %v\n%s", hint, err, out)
					}
				}
				if refusals == 0 {
					t.Error("nothing is refused")
				}
			})
		}
	}
}

// TestEnter checks which directories the command from EnterCommand changes: the
// first one that this process can't enter, and the directories below it.
func TestEnter(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root enters everything")
	}
	top := t.TempDir()
	must(t, os.MkdirAll(top+"/a/b/c", 0o700))
	if got := EnterCommand(top + "/a/b/none/k"); got != "" {
		t.Errorf("nothing is closed: %q", got)
	}
	for _, closed := range [][]string{{"/a/b/c"}, {"/a/b", "/a/b/c"}, {"/a", "/a/b", "/a/b/c"}} {
		want := "chmod a+x"
		for i, dir := range closed {
			want += " " + Quote(top+dir)
			must(t, os.Chmod(top+closed[len(closed)-1-i], 0o600)) // closes the innermost directory first
		}
		got := EnterCommand(top + "/a//b/c/k")
		if got != want+" && " {
			t.Errorf("got %q, want %q", got, want)
		}
		if out, err := exec.Command("/bin/sh", "-c", got+"ls "+Quote(top+"/a/b/c/.")).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", got, err, out)
		}
	}
}
