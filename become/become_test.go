package become

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

func TestVerify(t *testing.T) {
	tests := []struct {
		name string
		u    Ucred
		ok   bool
	}{
		{"a user", Ucred{UID: 1000, GID: 100}, true},
		{"overflow uid", Ucred{UID: Overflow, GID: 100}, false},
		{"overflow gid", Ucred{UID: 1000, GID: Overflow}, false},
		{"group 0", Ucred{UID: 1000, GID: 0}, false},
		{"no credentials", Ucred{UID: NoID, GID: NoID}, false},
	}
	for _, tt := range tests {
		if err := tt.u.Verify(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestBelongsToUser checks under whose ids schedrestd-config may run.
func TestBelongsToUser(t *testing.T) {
	for _, tt := range []struct {
		name           string
		mode, uid, gid uint32
		want           bool
	}{
		{"a user's directory", unix.S_IFDIR | 0o700, 997, 997, true},
		{"another group may enter", unix.S_IFDIR | 0o750, 997, 997, false},
		{"a sticky directory", unix.S_IFDIR | 0o1777, 997, 997, false},
		{"a link", unix.S_IFLNK | 0o777, 997, 997, false},
		{"a file", unix.S_IFREG | 0o700, 997, 997, false},
		{"root's directory", unix.S_IFDIR | 0o700, 0, 997, false},
		{"group 0", unix.S_IFDIR | 0o700, 997, 0, false},
		{"a uid of outside of the container", unix.S_IFDIR | 0o700, Overflow, 997, false},
		{"a gid of outside of the container", unix.S_IFDIR | 0o700, 997, Overflow, false},
	} {
		st := unix.Stat_t{Mode: tt.mode, Uid: tt.uid, Gid: tt.gid}
		if got := belongsToUser(&st); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestPrivateGroup(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n" +
			"carol:x:1002:100::/:/bin/sh\ndave:x:1003:1003::/:/bin/sh\nshort:x:1004:1004\n",
		"group": "users:x:100:\nalice:x:1000:\nbob:x:1001:alice\ncarol:x:1002:\nteam:x:1003:\nshort:x:1004:\nfar:x:5000:\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name         string
		owner, group uint32
		want         bool
	}{
		{"a group of one's own", 1000, 1000, true},
		{"a group with another member", 1001, 1001, false},
		{"a group that is not the primary one", 1002, 1002, false},
		{"a shared primary group", 1002, 100, false},
		{"a group of another name", 1003, 1003, false},
		{"another user's group", 1001, 1000, false},
		{"a broken line", 1004, 1004, false},
		{"a user that the files do not have", 5000, 5000, false},
	}
	for _, tt := range tests {
		if got := privateGroup(dir, tt.owner, tt.group); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	if privateGroup(t.TempDir(), 1000, 1000) {
		t.Error("private without any files")
	}
}

// TestExists checks that mapContains finds exactly the ids in a uid_map.
func TestExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "uid_map")
	if err := os.WriteFile(path, []byte("         0       1000          1\n         1     100000      65535\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uint32]bool{0: true, 1: true, 65535: true, 65536: false, 0x7ffe_0000: false, NoID: false} {
		if got := mapContains(path, id); got != want {
			t.Errorf("%d: %t", id, got)
		}
	}
	if mapContains(path+".none", 0) {
		t.Error("without a map")
	}
}

// TestUnusedID checks that UnusedID returns ids outside the ranges that belong
// to users, temporary users, containers and images of other systems, in every
// user namespace in which the tests run.
func TestUnusedID(t *testing.T) {
	taken := []struct {
		name        string
		first, last uint32
	}{
		{"system users and users", 0, 60577}, {"users of the login screen", 60578, 60705}, {"DynamicUser=", 61184, 65519}, {"the overflow id and the 16-bit -1", 65534, 65535},
		{"ranges of subuid files", 65536, 524287}, {"containers", 524288, 1879048191}, {"foreign images", 0x7ffe_0000, 0x7ffe_ffff}, {"negative numbers", 0x7fff_ffff, NoID},
	}
	check := func(id uint32) {
		for _, r := range taken {
			if id >= r.first && id <= r.last {
				t.Errorf("%d belongs to %s", id, r.name)
			}
		}
	}
	for _, r := range unusedRanges {
		check(r.first)
		check(r.last)
	}
	for range 1000 {
		id, err := UnusedID()
		if err != nil {
			t.Fatal(err)
		}
		check(id)
	}
}

// TestNoUnusedID checks that UnusedID fails in a user namespace that has only one
// id: the process could not change to another one.
func TestNoUnusedID(t *testing.T) {
	if os.Getenv("BECOME_ONE_ID") != "" {
		if id, err := UnusedID(); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("got %d, %v", id, err)
		}
		return
	}
	one := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNoUnusedID$")
	cmd.Env = append(os.Environ(), "BECOME_ONE_ID=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one,
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skip("this user may not create user namespaces")
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestReaderID checks which directories determine the ids of schedrestd-config.
func TestReaderID(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give directories to users")
	}
	for _, tt := range []struct {
		name     string
		uid, gid int
		mode     os.FileMode
		isFile   bool
		isLink   bool
		used     bool
	}{
		{name: "of a user", uid: 997, gid: 998, mode: 0o700, used: true},
		{name: "of root", mode: 0o700},
		{name: "of root's group", uid: 997, mode: 0o700},
		{name: "of a user and root", gid: 998, mode: 0o700},
		{name: "others can read", uid: 997, gid: 998, mode: 0o755},
		{name: "the group can write", uid: 997, gid: 998, mode: 0o770},
		{name: "setgid", uid: 997, gid: 998, mode: 0o700 | os.ModeSetgid},
		{name: "file", uid: 997, gid: 998, mode: 0o700, isFile: true},
		{name: "link", uid: 997, gid: 998, mode: 0o700, isLink: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			err := os.Mkdir(path, 0o700)
			if tt.isFile {
				err = errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o700))
			}
			if err = errors.Join(err, os.Chown(path, tt.uid, tt.gid), os.Chmod(path, tt.mode)); tt.isLink {
				err = errors.Join(err, os.Symlink(path, path+"-link"))
				path += "-link"
			}
			if err != nil {
				t.Fatal(err)
			}
			uid, gid, err := readerID(path)
			if err != nil || (uid == 997 && gid == 998) != tt.used || !tt.used && (uid != gid || uid < 60_000) {
				t.Errorf("%d:%d, %v", uid, gid, err)
			}
		})
	}
	if uid, gid, err := readerID("/nowhere/cache"); err != nil || uid != gid || uid < 60_000 {
		t.Errorf("without a directory: %d:%d, %v", uid, gid, err)
	}
}
