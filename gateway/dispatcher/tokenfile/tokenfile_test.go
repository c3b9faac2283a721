package tokenfile

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

const id = "ABCDEFGHIJKLMNOPQRSTUVWX27"

var line = gatewaytoken.RevokeToken(id)

// newFollower returns a Follower of a file, and a function that returns what the
// keeper has got since its last call: the texts of registers, and "none" if there
// is none that can be used.
func newFollower(t *testing.T, text string) (f *Follower, got func() string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var texts []string
	f = &Follower{Path: filepath.Join(dir, "tokens"), Rules: work.TokenRegister{Cluster: "c"}, Log: slog.New(slog.DiscardHandler)}
	f.Send = func(m ipc.Message, fds ...int) error {
		r, ok := m.(*work.TokenRegister)
		if !ok {
			texts = append(texts, "none")
			return nil
		}
		file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fds[0]))
		if err != nil {
			t.Error(err)
			return nil
		}
		defer file.Close()
		text, err := io.ReadAll(file)
		if err != nil || len(text) != int(r.Size) || r.Cluster != "c" {
			t.Errorf("%+v, %v", r, err)
		}
		texts = append(texts, string(text))
		return nil
	}
	write(t, f.Path, text)
	return f, func() string {
		defer func() { texts = nil }()
		return strings.Join(texts, "|")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace gives the file another text in one step.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestFollower checks what the keeper gets when the file changes.
func TestFollower(t *testing.T) {
	settled := false
	f, got := newFollower(t, line)
	f.settled = func(string) bool { return settled }
	if err := f.Start(); err != nil || got() != line {
		t.Fatal(err)
	}
	want := func(name, text string) {
		t.Helper()
		if f.look(); got() != text {
			t.Errorf("%s: not as expected", name)
		}
	}
	want("no change", "")
	replace(t, f.Path, line+"#\n")
	want("a line more", line+"#\n")
	want("no change", "")
	replace(t, f.Path, line+"# half a line")
	want("half a line", "none")
	want("no change", "")
	write(t, f.Path, "")
	want("emptied", "")
	want("still empty", "")
	write(t, f.Path, line+line+"#\n")
	want("written again", line+line+"#\n")
	replace(t, f.Path, "#\n")
	want("shorter", "")
	settled = true
	want("shorter, and complete", "#\n")
	replace(t, f.Path, "revoke it\n")
	want("a wrong line", "none")
	replace(t, f.Path, line)
	want("right again", line)
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	want("removed", "none")
	replace(t, f.Path, line)
	want("made again", line)
	if err := os.Chmod(f.Path, 0o666); err != nil {
		t.Fatal(err)
	}
	want("writable by others", "none")
}

// TestStart checks which registers a gateway does not start with.
func TestStart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		text   string
		change func(path string) error
		err    string // "" if it starts
		hint   string
	}{
		{"empty", "", nil, "", ""},
		{"a revocation", line, nil, "", ""},
		{"a wrong line", "revoke it\n", nil, "line 1", "correct the line"},
		{"half a line", line + "revoke", nil, "line 2", "correct the line"},
		{"missing", "", os.Remove, "no such file", "install -m 0644 /dev/null"},
		{"writable by others", "", func(path string) error { return os.Chmod(path, 0o666) }, "other users write", ""},
		{"too long", strings.Repeat("#\n", gatewaytoken.MaxRegister/2+1), nil, "longer than", ""},
	} {
		f, got := newFollower(t, tt.text)
		if tt.change != nil {
			if err := tt.change(f.Path); err != nil {
				t.Fatal(err)
			}
		}
		err := f.Start()
		if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || !strings.Contains(errs.HintOf(err), tt.hint)) {
			t.Errorf("%s: %v, hint %q", tt.name, err, errs.HintOf(err))
		}
		if text := got(); err != nil && text != "" {
			t.Errorf("%s: the keeper got %q", tt.name, text)
		}
	}
}

// TestHintOfRemoved checks that the hint about a register that has been removed is
// not to make an empty one.
func TestHintOfRemoved(t *testing.T) {
	f, _ := newFollower(t, line)
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if hint := errs.HintOf(f.send()); !strings.Contains(hint, "restore it") || strings.Contains(hint, "install") {
		t.Errorf("the hint is %q", hint)
	}
}

// TestSettle checks that a register that is being written is not sent at once.
func TestSettle(t *testing.T) {
	f, got := newFollower(t, "")
	looks := 0
	f.settled = func(path string) bool {
		if looks++; looks == 3 {
			write(t, path, line)
			return true
		}
		return false
	}
	f.Settle()
	if err := f.Start(); err != nil || looks != 3 || got() != line {
		t.Errorf("after %d looks: %v", looks, err)
	}
	f.settled = func(string) bool { return false }
	f.Settle() // a file that changes all the time
}
