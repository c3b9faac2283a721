package auth

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/errs"
)

// A followed is a Followed that records the argument of each call to onReload.
type followed struct {
	*Followed
	path    string
	reports []error
}

func follow(t *testing.T, set string) *followed {
	t.Helper()
	f := &followed{path: filepath.Join(t.TempDir(), "key set")}
	write(t, f.path, set, 0o644)
	var err error
	f.Followed, err = FollowKeySet(f.path, func(err error) { f.reports = append(f.reports, err) }, trusting())
	must(t, err)
	return f
}

// ids makes f check its file as if a second had passed, and returns the kids of
// the keys in use.
func (f *followed) ids() string {
	f.lastCheck = time.Now().Add(-checkInterval)
	return f.KeySet().String()
}

// expect checks the ids of the keys in use, and the errors that were passed to
// onReload since the previous call to expect. Each string in want must be part
// of the corresponding error. An empty string stands for a nil error.
func (f *followed) expect(t *testing.T, ids string, want ...string) {
	t.Helper()
	if got := f.ids(); got != ids {
		t.Errorf("the keys in use are %s, want %s", got, ids)
	}
	f.ids() // a second check must report no reload
	if len(f.reports) != len(want) {
		t.Fatalf("reported %v, want %q", f.reports, want)
	}
	for i, cause := range want {
		err := f.reports[i]
		switch {
		case cause == "" && err != nil, cause != "" && (err == nil || !strings.Contains(err.Error(), cause)):
			t.Errorf("reported %v, want %q", err, cause)
		case cause != "" && (!strings.Contains(err.Error(), f.path) || !strings.Contains(errs.HintOf(err), "'"+f.path) || !strings.Contains(err.Error(), "keeping the current one")):
			t.Errorf("logged %v, hint %q; want the file, the key in use, and the remedy", err, errs.HintOf(err))
		}
	}
	f.reports = nil
}

func TestFollowKeySet(t *testing.T) {
	public := &providerKey().PublicKey
	one, two, three := keySet(jwk(public, `,"kid":"1"`)), keySet(jwk(public, `,"kid":"2"`)), keySet(jwk(public, `,"kid":"3"`))
	const first, second, third = `kid "1"`, `kid "2"`, `kid "3"`
	replace := func(t *testing.T, f *followed, set string) {
		t.Helper()
		write(t, f.path+".new", set, 0o644)
		must(t, os.Rename(f.path+".new", f.path))
	}
	for _, test := range []struct {
		name string
		run  func(t *testing.T, f *followed)
	}{
		{"nothing happens", func(t *testing.T, f *followed) { f.expect(t, first) }},
		{"written over", func(t *testing.T, f *followed) {
			write(t, f.path, two+" ", 0o644)
			f.expect(t, second, "")
			write(t, f.path, three, 0o644)
			f.expect(t, third, "")
		}},
		{"replaced by rename", func(t *testing.T, f *followed) {
			replace(t, f, two)
			f.expect(t, second, "")
			replace(t, f, three)
			f.expect(t, third, "")
		}},
		{"broken, then corrected", func(t *testing.T, f *followed) {
			replace(t, f, two[:40])
			f.expect(t, first, "not JSON")
			replace(t, f, keySet(jwk(public, `,"d":"x"`)))
			f.expect(t, first, "key 1: contains d")
			replace(t, f, two)
			f.expect(t, second, "")
		}},
		{"empty, as while it is written", func(t *testing.T, f *followed) {
			write(t, f.path, "", 0o644)
			f.expect(t, first, "not a JSON object")
			write(t, f.path, two, 0o644)
			f.expect(t, second, "")
		}},
		{"removed, then restored", func(t *testing.T, f *followed) {
			must(t, os.Rename(f.path, f.path+".away"))
			f.expect(t, first, "no such file")
			must(t, os.Rename(f.path+".away", f.path))
			f.expect(t, first, "")
		}},
		{"others may write it, then not", func(t *testing.T, f *followed) {
			write(t, f.path, two, 0o646)
			f.expect(t, first, "mode 0646 lets other users write it")
			must(t, os.Chmod(f.path, 0o644))
			f.expect(t, second, "")
		}},
		{"a link in its place", func(t *testing.T, f *followed) {
			write(t, f.path+".new", two, 0o644)
			must(t, os.Remove(f.path))
			must(t, os.Symlink(f.path+".new", f.path))
			f.expect(t, first, "a symbolic link")
		}},
		{"owned by another user", func(t *testing.T, f *followed) {
			if os.Geteuid() != 0 {
				t.Skip("needs root, to give a file away")
			}
			must(t, os.Chown(f.path, 4712, 0))
			f.expect(t, first, "owned by uid 4712")
		}},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, follow(t, one)) })
	}
}

// TestFollowKeySetChecksOncePerSecond checks that KeySet does not check the
// file again within the same second.
func TestFollowKeySetChecksOncePerSecond(t *testing.T) {
	f := follow(t, keySet(jwk(&providerKey().PublicKey, `,"kid":"1"`)))
	must(t, os.Remove(f.path))
	f.lastCheck = time.Now().Add(time.Hour) // in the future, so that the one-second interval can't end during this test
	f.KeySet()
	if f.reports != nil {
		t.Errorf("the file was checked again at once: %v", f.reports)
	}
	f.expect(t, `kid "1"`, "no such file")
}

// TestFollowKeySetDoesNotBlock checks that KeySet returns the current set at
// once if another goroutine is reading a slow file. The onReload function is
// also allowed to call KeySet.
func TestFollowKeySetDoesNotBlock(t *testing.T) {
	f := follow(t, keySet(jwk(&providerKey().PublicKey, `,"kid":"1"`)))
	var meanwhile *KeySet
	f.Followed.onReload = func(error) {
		result := make(chan *KeySet)
		go func() { result <- f.KeySet() }()
		select {
		case meanwhile = <-result:
		case <-time.After(time.Minute):
			t.Error("waits")
		}
	}
	must(t, os.Remove(f.path))
	if before := f.Followed.set.Load(); f.ids() == "" || meanwhile != before {
		t.Errorf("got %v", meanwhile)
	}
}

// TestFollowKeySetTogether lets the race detector check concurrent use: one
// goroutine changes the file while many others use the set.
func TestFollowKeySetTogether(t *testing.T) {
	public := &providerKey().PublicKey
	path := filepath.Join(t.TempDir(), "set")
	write(t, path, keySet(jwk(public, ``)), 0o644)
	f, err := FollowKeySet(path, func(error) {}, trusting())
	must(t, err)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				f.checking.Lock()
				f.lastCheck = time.Time{}
				f.checking.Unlock()
				if f.KeySet().Len() != 1 {
					t.Error("no keys")
				}
			}
		})
	}
	for range 20 {
		write(t, path, "", 0o644)
		write(t, path, keySet(jwk(public, ``)), 0o644)
	}
	wait.Wait()
}

func TestFollowKeySetFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "set")
	if f, err := FollowKeySet(path, func(error) { t.Error("onReload was called") }, trusting()); f != nil || errs.KindOf(err) != errs.NotFound {
		t.Errorf("absent: got %v, %v", f, err)
	}
	write(t, path, keySet(), 0o644)
	if f, err := FollowKeySet(path, func(error) { t.Error("onReload was called") }, trusting()); f != nil || errs.KindOf(err) != errs.Invalid {
		t.Errorf("without keys: got %v, %v", f, err)
	}
}
