package auth

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// refusal loads a file and returns the error. If secret is true, it loads a
// key, and otherwise a key set.
func refusal(secret bool, path string, trust guard.Trust) (err error) {
	if secret {
		_, err = LoadKey(path, trust)
	} else {
		_, err = LoadKeySet(path, trust)
	}
	return err
}

// runHint runs a hint in a shell with the umask of a careful administrator. It
// changes only one thing in the hint: it replaces the placeholder URL with the
// URL of a local key set.
func runHint(t *testing.T, hint, set string) {
	t.Helper()
	hint = strings.ReplaceAll(hint, " URL ", " file://"+set+" ")
	if out, err := exec.Command("/bin/sh", "-c", "umask 077; "+hint).CombinedOutput(); err != nil || hint == "" {
		t.Fatalf("%q: %v\n%s", hint, err, out)
	}
}

// TestHintsFix checks that the hints in errors, run one after another in a
// shell, fix an unusable key file or key set. If the test runs as root, root
// runs the hints, and the file is for another user. Afterwards the process that
// needs the file must be able to read it.
func TestHintsFix(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	self := os.Geteuid()
	reader, owners := self, []int{self}
	if self == 0 {
		reader, owners = 31234, []int{0, 31234, 31237}
	}
	good := keySet(jwk(&providerKey().PublicKey, ``))
	set := filepath.Join(t.TempDir(), "published")
	write(t, set, good, 0o644)
	tests := map[string]struct {
		kind  string // "key" or "set"; "" for both
		root  bool   // only root can prepare or fix this
		hints int    // number of faults; 0 stands for 1
		spoil func(dir, path string)
	}{
		"nothing":                          {spoil: func(_, path string) { must(t, os.Remove(path)) }},
		"no directory":                     {spoil: func(dir, _ string) { must(t, os.RemoveAll(filepath.Dir(dir))) }},
		"31 bytes":                         {kind: "key", spoil: func(_, path string) { write(t, path, strings.Repeat("ab", 16)[1:], 0o600) }},
		"zeros":                            {kind: "key", spoil: func(_, path string) { write(t, path, strings.Repeat("\x00", 32), 0o600) }},
		"mode 0000":                        {spoil: func(_, path string) { must(t, os.Chmod(path, 0)) }},
		"directory that no user may enter": {spoil: func(dir, path string) { must(t, os.Chmod(path, 0)); must(t, os.Chmod(dir, 0o600)) }},
		"others may write":                 {hints: 2, spoil: func(dir, path string) { must(t, os.Chmod(path, 0o666)); must(t, os.Chmod(dir, 0o777)) }},
		"a cut set":                        {kind: "set", spoil: func(_, path string) { write(t, path, good[:len(good)/2], 0o644) }},
		"a page":                           {kind: "set", spoil: func(_, path string) { write(t, path, "<html>", 0o644) }},
		"empty":                            {hints: 2, spoil: func(_, path string) { write(t, path, "", 0o600) }},
		"another user's directory":         {root: true, spoil: func(dir, _ string) { must(t, os.Chown(dir, 31237, 31237)); must(t, os.Chmod(dir, 0o700)) }},
		"a group's directory":              {hints: 2, root: true, spoil: func(dir, _ string) { must(t, os.Chown(dir, 0, 31237)); must(t, os.Chmod(dir, 0o770)) }},
		"another user's file":              {root: true, spoil: func(_, path string) { must(t, os.Chown(path, 31237, 31237)) }},
		"root's, with its group":           {kind: "key", root: true, spoil: func(_, path string) { must(t, os.Chown(path, 0, reader)); must(t, os.Chmod(path, 0o444)) }},
		"short, root's, by group":          {kind: "key", root: true, spoil: func(_, path string) { write(t, path, "short", 0o440); must(t, os.Chown(path, 0, reader)) }},
	}
	for name, test := range tests {
		for _, kind := range []string{"key", "set"} {
			for _, owner := range owners {
				if test.kind != "" && test.kind != kind || test.root && self != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s of %d", name, kind, owner), func(t *testing.T) {
					top := t.TempDir()
					must(t, os.Chmod(filepath.Dir(top), 0o755))
					must(t, os.Chmod(top, 0o755))
					dir := filepath.Join(top, "above", "it's a directory")
					must(t, os.MkdirAll(dir, 0o755))
					path := filepath.Join(dir, kind)
					write(t, path, map[string]string{"key": string(secret), "set": good}[kind], map[string]os.FileMode{"key": 0o600, "set": 0o644}[kind])
					must(t, os.Chown(path, owner, -1))
					must(t, os.Chown(dir, owner, -1))
					test.spoil(dir, path)
					hints := 0
					for ; hints < 9; hints++ {
						hint := hintFor(t, reader, kind, path)
						if hint == "" {
							break
						}
						runHint(t, hint, set)
					}
					maxHints := max(1, test.hints)
					switch { // add the hints for the file's owner
					case owner != reader && owner != 0: // the file and the directory belong to another user
						maxHints += 2
					case owner != reader && kind == "key": // only root can read the file
						maxHints++
					}
					if hints == 0 || hints > maxHints {
						t.Errorf("%d hints, want at most %d", hints, maxHints)
					}
					if _, err := os.Lstat(path + ".new"); !os.IsNotExist(err) {
						t.Errorf("the other file: %v", err)
					}
				})
			}
		}
	}
}

// hintFor returns the hint that a process with the given uid gets for a file,
// or "" if the process can read the file.
func hintFor(t *testing.T, uid int, kind, path string) string {
	t.Helper()
	self, err := os.Open("/proc/self/exe") // opened here, because the user with this uid may be unable to reach the program's directory
	must(t, err)
	defer self.Close()
	c := exec.Command("/proc/self/fd/3", "-test.run=^TestAsks$")
	c.ExtraFiles = []*os.File{self}
	c.Dir = "/"
	c.Env = []string{"ASKS_OF=" + kind, "ASKS_FOR=" + path}
	if uid != os.Geteuid() {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, hint, _ := strings.Cut(string(out), "hint: ")
	hint, _, _ = strings.Cut(hint, "\n")
	return hint
}

// TestAsks runs in the process that hintFor starts.
func TestAsks(t *testing.T) {
	kind, path := os.Getenv("ASKS_OF"), os.Getenv("ASKS_FOR")
	if kind == "" {
		t.Skip("is started by TestHintsFix")
	}
	if err := refusal(kind == "key", path, trusting()); err != nil {
		fmt.Printf("%v\nhint: %s\n", err, errs.HintOf(err))
	}
}

// TestHintsAreSafe checks that no hint overwrites a file that was configured by
// mistake.
func TestHintsAreSafe(t *testing.T) {
	const certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ\n-----END CERTIFICATE-----\n"
	path := filepath.Join(t.TempDir(), "a key")
	for _, text := range []string{certificate, strings.Repeat("x", maxKey+1), `{"keys":[{"kty":"RSA","d":"AQAB"}]} `} {
		write(t, path, text, 0o600)
		hint := errs.HintOf(refusal(true, path, trusting()))
		if !strings.HasSuffix(hint, "; then jwt_key="+guard.Quote(path+".new")) {
			t.Errorf("hint %q", hint)
		}
		runHint(t, hint, "")
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("the file is now %.40q", got)
		}
		if err := refusal(true, path+".new", trusting()); err != nil {
			t.Errorf("the new key: %v", err)
		}
		hint = errs.HintOf(refusal(false, path, trusting()))
		if !strings.HasPrefix(hint, "curl --fail --output "+guard.Quote(path+".new")+" URL && ") || !strings.HasSuffix(hint, "; then jwks="+guard.Quote(path+".new")) {
			t.Errorf("hint %q", hint)
		}
	}
}

// TestDirectoriesOfKeys tests the rules for the directories above a key file or
// key set. A user who owns one of them, or may write to it, could replace the
// key.
func TestDirectoriesOfKeys(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a directory away")
	}
	const sched, alice, users = 31234, 31237, 31238
	private := guard.Trust{Owners: []uint32{sched}, PrivateGroup: func(owner, group uint32) bool { return owner == group }}
	good := keySet(jwk(&providerKey().PublicKey, ``))
	for _, test := range []struct {
		uid, gid int
		mode     os.FileMode
		want     string // "" if the key is accepted
	}{
		{0, 0, 0o755, ""},
		{0, 0, 0o775, ""},
		{sched, sched, 0o700, ""},
		{sched, sched, 0o775, ""}, // the group has only this user
		{alice, alice, 0o700, "belongs to uid 31237, must belong to uid 0 or 31234"},
		{alice, alice, 0o755, "belongs to uid 31237"},
		{0, users, 0o770, "is writable by group 31238"},
		{sched, users, 0o770, "is writable by group 31238"},
	} {
		for _, above := range []bool{false, true} {
			for _, kind := range []string{"key", "set"} {
				top := filepath.Join(t.TempDir(), "top")
				dir := filepath.Join(top, "dir")
				must(t, os.MkdirAll(dir, 0o755))
				path, changed := filepath.Join(dir, kind), dir
				if above {
					changed = top
				}
				write(t, path, map[string]string{"key": string(secret), "set": good}[kind], 0o600)
				must(t, os.Chown(path, sched, sched))
				must(t, os.Chown(changed, test.uid, test.gid))
				must(t, os.Chmod(changed, test.mode))
				err := refusal(kind == "key", path, private)
				if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), changed+" ")) {
					t.Errorf("%s, %+v, above %v: got %v", kind, test, above, err)
				}
			}
		}
	}
}

// TestReplace runs the command from replaceCommand. It checks that the file has
// the new content and the old mode, and that no other file is left.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a file")
	write(t, path, "old", 0o640)
	hint := replaceCommand(path, "(umask 077; echo next >%s)")
	if out, err := exec.Command("/bin/sh", "-c", hint).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", hint, err, out)
	}
	info, err := os.Lstat(path)
	must(t, err)
	if text, _ := os.ReadFile(path); string(text) != "next\n" || info.Mode() != 0o640 {
		t.Errorf("%q of mode %s", text, info.Mode())
	}
	if _, err := os.Lstat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("the other one: %v", err)
	}
}
