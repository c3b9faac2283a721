package ctld

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStateBelowAStrangersDirectory checks that a state directory is refused if
// another user owns one of its parent directories.
func TestStateBelowAStrangersDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("giving a directory to another user needs root")
	}
	otherDir := filepath.Join(t.TempDir(), "theirs")
	state := filepath.Join(otherDir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(otherDir, 54321, 54321); err != nil {
		t.Fatal(err)
	}
	if lock, _, err := openStateDir(state); err == nil {
		lock.Close()
		t.Error("a state directory below another user's directory is accepted")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if lock, _, err := openStateDir(link); err == nil {
		lock.Close()
		t.Error("a link is accepted as the state directory")
	}
}

func TestStateIsMade(t *testing.T) {
	dir := t.TempDir()
	lock, real, err := openStateDir(dir + "/state/")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := os.Stat(filepath.Join(real, "steps")); err != nil {
		t.Error(err)
	}
	if _, _, err := openStateDir(dir + "/state"); err == nil {
		t.Error("the state directory was locked twice")
	}
}
